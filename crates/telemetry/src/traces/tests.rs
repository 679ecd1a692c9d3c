use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use gateway::record::{Ending, Record, Sink};
use tool::clock::Fake;
use tool::trace::SpanContext;
use tool::{
    Ask, Call, Client, Context, Event, Failure, FixedProvider, Identity, Json, Listing, Object,
    Provider, Reply,
};

use super::tracer::MAX_PENDING;
use super::*;
use crate::fixture::record;
use crate::semantics::{Side, Target};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// An upstream that answers with the question it got.
struct Echo;

#[async_trait]
impl Provider for Echo {
    fn listing(&self) -> Arc<Listing> {
        Arc::default()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::empty())
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        Ok(Reply::Result(ask.params()))
    }
}

/// A gate: hands questions on, and leaves a record.
struct Gate {
    upstream: Arc<dyn Provider>,
    sink: Tracer,
    clock: Arc<Fake>,
}

#[async_trait]
impl Provider for Gate {
    fn listing(&self) -> Arc<Listing> {
        Arc::default()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::empty())
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        self.clock.advance(Duration::from_millis(1));
        let answer = self.upstream.ask(ask, context).await;
        let record = record(&self.clock, "files", "read", Ending::Gated);
        self.sink.put(Record { trace: context.trace.clone(), ..record });
        answer
    }
}

fn gate(sample: f64) -> (Tracer, Arc<dyn Provider>) {
    let clock = Arc::new(Fake::default());
    let tracer = Tracer::new(sample, Arc::clone(&clock) as _);
    let peer = Peer { transport: "pipe", upstream: Some("files".to_owned()), address: None };
    let upstream = traced_upstream(&tracer, Arc::new(Echo), peer);
    let gate = Gate { upstream, sink: tracer.clone(), clock };
    let source = traced_source(&tracer, Arc::new(FixedProvider(Arc::new(gate))), Peer::default());
    let client = Arc::new(Client::named("c", "2025-11-25"));
    (tracer, source.provider_for(&client, &Arc::new(Identity::default())))
}

fn call(meta: Option<&str>) -> Ask {
    let mut call = Call::new("read", Json::empty_object());
    if let Some(meta) = meta {
        call.other_params =
            Object::from_iter([("_meta".to_owned(), Json::parse(meta.to_owned()).unwrap())]);
    }
    Ask::Call(call)
}

async fn answer(gate: &Arc<dyn Provider>, ask: Ask, context: &Context) -> Json {
    match gate.ask(ask, context).await {
        Ok(Reply::Result(json)) => json,
        other => panic!("{other:?}"),
    }
}

/// The operations, the one of the server first.
fn taken(tracer: &Tracer) -> [Operation; 2] {
    let mut operations = tracer.take().operations;
    operations.sort_by_key(|operation| operation.side == Side::Client);
    operations.try_into().expect("one where we answer, one where we ask")
}

#[tokio::test]
async fn a_call_is_a_server_span_with_a_client_span_inside() {
    let (tracer, gate) = gate(1.0);
    let meta = format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1","other":[1]}}"#);
    let sent = answer(&gate, call(Some(&meta)), &Context::anonymous()).await;
    let [server, client] = taken(&tracer);
    assert_eq!((server.method, &server.target), ("tools/call", &Target::Tool("read".to_owned())));
    let (server, client) = (server.span.unwrap(), client.span.unwrap());
    let parent = SpanContext::parse(PARENT, None).unwrap();
    assert_eq!(server.parent, Some(parent.span_id()));
    assert_eq!(client.parent, Some(server.context.span_id()));
    assert_eq!(client.context.trace_id(), parent.trace_id());
    // The upstream is told of the client span, and of nothing else that was there less.
    let meta = sent.member("_meta").unwrap();
    assert_eq!(
        meta.member("traceparent").unwrap().string_value(),
        Some(client.context.to_string())
    );
    assert_eq!(meta.member("tracestate").unwrap().string_value().as_deref(), Some("a=1"));
    assert_eq!(meta.member("other").unwrap().as_str(), "[1]");
    // Every stage is an event of the span, and the last one says what was decided.
    let names: Vec<&str> = server.events.iter().map(|note| note.name).collect();
    assert_eq!(names, ["validate", "upstream", "gate", "gatelet.call"]);
    assert_eq!(server.events[2].attributes, [("gatelet.decision", "gated".to_owned())]);
}

#[tokio::test]
async fn a_trace_that_the_client_does_not_record_is_not_recorded_and_passes_as_it_is() {
    let (tracer, gate) = gate(1.0);
    let meta = format!(r#"{{"traceparent":"{}"}}"#, PARENT.replace("-01", "-00"));
    let sent = answer(&gate, call(Some(&meta)), &Context::anonymous()).await;
    assert_eq!(sent.member("_meta").unwrap().as_str(), meta);
    // They are counted all the same.
    let [server, client] = taken(&tracer);
    assert!(server.span.is_none() && client.span.is_none());
}

#[tokio::test]
async fn the_share_decides_about_traces_that_begin_here() {
    for (sample, expected) in [(0.0, 0), (1.0, 100)] {
        let (tracer, gate) = gate(sample);
        for _ in 0..50 {
            answer(&gate, call(None), &Context::anonymous()).await;
        }
        let operations = tracer.take().operations;
        let recorded = operations.iter().filter(|operation| operation.span.is_some()).count();
        assert_eq!((operations.len(), recorded), (100, expected));
    }
}

#[tokio::test]
async fn what_the_transport_says_counts_after_the_question_and_is_linked() {
    let other = PARENT.replace("4bf9", "aaaa");
    let carried = tool::trace::Trace::new(SpanContext::parse(&other, None));
    carried.set_request_id(|| "7".to_owned());
    let context = Context { trace: Some(Arc::new(carried)), ..Context::anonymous() };
    let (tracer, gate) = gate(1.0);
    answer(&gate, call(None), &context).await;
    let [server, _] = taken(&tracer);
    let span = server.span.unwrap();
    assert_eq!(
        (span.context.to_string()[3..35] == other[3..35], span.link.is_none()),
        (true, true)
    );
    assert_eq!(span.request_id.as_deref(), Some("7"));
    answer(&gate, call(Some(&format!(r#"{{"traceparent":"{PARENT}"}}"#))), &context).await;
    let [server, _] = taken(&tracer);
    let span = server.span.unwrap();
    assert_eq!(&span.context.to_string()[3..35], &PARENT[3..35]);
    assert_eq!(span.link.map(|link| link.to_string()), Some(other));
}

#[tokio::test]
async fn a_damaged_parent_begins_a_trace_of_its_own() {
    let (tracer, gate) = gate(1.0);
    let meta = r#"{"traceparent":"00-zz","tracestate":"a=1"}"#;
    let sent = answer(&gate, call(Some(meta)), &Context::anonymous()).await;
    let [server, client] = taken(&tracer);
    assert_eq!(server.span.unwrap().parent, None);
    let meta = sent.member("_meta").unwrap();
    let told = client.span.unwrap().context.to_string();
    assert_eq!(meta.member("traceparent").unwrap().string_value(), Some(told));
    // The state belonged to a span that there is not.
    assert_eq!(meta.member("tracestate"), None);
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_told_of() {
    let (tracer, gate) = gate(1.0);
    let context = Context::anonymous();
    let mut asking = gate.ask(call(None), &context);
    // Begun, and dropped before it is answered.
    let begun = futures::poll!(&mut asking);
    drop((begun, asking));
    let operations = tracer.take().operations;
    assert!(!operations.is_empty());
}

#[test]
fn under_pressure_spans_are_dropped_and_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (tracer, gate) = gate(1.0);
    runtime.block_on(async {
        for _ in 0..MAX_PENDING / 2 + 5 {
            answer(&gate, call(None), &Context::anonymous()).await;
        }
    });
    assert_eq!((tracer.take().operations.len(), tracer.dropped()), (MAX_PENDING, 10));
}

#[tokio::test]
async fn sessions_of_clients_are_timed() {
    let (tracer, gate) = gate(1.0);
    drop(gate);
    let sides: Vec<Side> = tracer.take().sessions.iter().map(|session| session.side).collect();
    assert_eq!(sides, [Side::Server, Side::Client]);
}

#[tokio::test]
async fn a_list_that_is_answered_from_memory_is_a_server_span() {
    let (tracer, gate) = gate(1.0);
    let meta = Json::parse(format!(r#"{{"traceparent":"{PARENT}"}}"#)).unwrap();
    let list = |method: &str| {
        let params = Object::from_iter([("_meta".to_owned(), meta.clone())]);
        Ask::Other { method: method.to_owned(), params }
    };
    let observer = gate.observe(&list("tools/list"), &Context::anonymous()).unwrap();
    observer.answered(&Reply::Result(Json::empty_object()));
    let refused = gate.observe(&list("prompts/list"), &Context::anonymous()).unwrap();
    refused.answered(&Reply::Error(tool::RpcError::new(-32601, "none")));
    // Whoever hangs up leaves a span that says so.
    drop(gate.observe(&list("resources/list"), &Context::anonymous()));
    let operations = tracer.take().operations;
    let seen: Vec<_> = operations
        .iter()
        .map(|one| (one.method, one.outcome.error_type.as_deref(), one.outcome.status_code))
        .collect();
    let expected = [
        ("tools/list", None, None),
        ("prompts/list", None, Some(-32601)),
        ("resources/list", Some("cancelled"), None),
    ];
    assert_eq!(seen, expected);
    let parent = SpanContext::parse(PARENT, None).unwrap();
    for operation in operations {
        assert_eq!((operation.side, operation.target), (Side::Server, Target::None));
        assert_eq!(operation.span.unwrap().parent, Some(parent.span_id()));
    }
}
