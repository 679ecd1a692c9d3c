//! Names the database in timeouts of a CMS site that is served without a gateway.

use std::sync::Arc;

use async_trait::async_trait;
use content::Content;
use futures::stream::BoxStream;
use tool::{Ask, Context, Event, Failure, Listing, Provider, Reply};

/// A site whose timeouts say that the database gave no answer. Behind a gateway that is
/// not needed, because it names the upstream.
pub(super) struct NamedDatabase(pub(super) Content);

#[async_trait]
impl Provider for NamedDatabase {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        self.0.ask(ask, context).await.map_err(name_database)
    }
}

fn name_database(failure: Failure) -> Failure {
    match failure {
        Failure::Timeout { after } => {
            let reason = format!(
                "the content database gave no answer within {after:?}; try again, or ask for less"
            );
            Failure::Unavailable { reason }
        }
        Failure::Unavailable { .. }
        | Failure::Lost { .. }
        | Failure::Unauthorized { .. }
        | Failure::Forbidden { .. }
        | Failure::RateLimited { .. }
        | Failure::Unusable { .. }
        | Failure::Cancelled
        | Failure::Unsupported { .. } => failure,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_silence_is_said_to_be_the_databases_and_may_be_tried_again() {
        let text = name_database(Failure::Timeout { after: Duration::from_secs(10) }).to_string();
        assert!(text.contains("database") && text.contains("10s"), "{text}");
        assert!(text.contains("try again"), "{text}");
    }
}
