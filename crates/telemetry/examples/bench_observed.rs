//! What it costs to watch a gate: the same call with nobody watching, with
//! figures and metrics, and with a trace around every call.
//!
//! `bench_observed` measures all of them in turns and prints processor time per
//! call, of all threads together, as ratios. A gate that could be watched and is not
//! may cost no more than one that nobody could watch: the program fails when it does,
//! by the median of the ratios of rounds that ran side by side. `bench_observed CASE CALLS`
//! makes so many calls in one case, to be counted by callgrind. The call goes through the
//! surface and the pipeline to a provider in this process: the wire, which costs
//! more than both, is not in it, so over a pipe or HTTP the ratios are smaller.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gateway::record::Sink;
use gateway::{Gateway, GatewayParts, Surface};
use roster::{Connector, Upstream};
use serde_json::json;
use store::clock::System;
use telemetry::fanout::Fanout;
use telemetry::figures::{Collect, Figures};
use telemetry::metrics;
use telemetry::traces::{Peer, Tracer, traced_source, traced_upstream};
use testkit::{Scripted, listing};
use tool::clock::Clock;
use tool::{Ask, Call, Client, Context, Failure, Provider, Reply};

/// How much more a call may cost where watching is off: what two equal cases differ by on
/// a quiet machine, and no more.
const MOST_OFF: f64 = 1.02;

/// Who watches.
const CASES: [&str; 5] = ["none", "off", "metrics", "traces", "sampled"];

/// What an upstream answers: a few hundred characters, as most do.
const ANSWER: &str = "The quick brown fox jumps over the lazy dog. It does so four times a day, weather \
    permitting, and keeps a record of every jump in a file that nobody reads. ";

struct Ready {
    provider: Arc<Scripted>,
    tracer: Option<Tracer>,
}

#[async_trait]
impl Connector for Ready {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let provider = Arc::clone(&self.provider) as Arc<dyn Provider>;
        Ok(match &self.tracer {
            Some(tracer) => traced_upstream(tracer, provider, Peer::default()),
            None => provider,
        })
    }
}

/// A gate with somebody who watches, and what they hold.
struct Watched {
    surface: Arc<dyn Provider>,
    tracer: Option<Tracer>,
    _gateway: Gateway,
}

async fn gate(case: &str) -> Watched {
    let clock: Arc<dyn Clock> = Arc::new(System::start());
    let tracer = match case {
        "traces" => Some(Tracer::new(1.0, Arc::clone(&clock))),
        "sampled" => Some(Tracer::new(0.1, Arc::clone(&clock))),
        _ => None,
    };
    let schema =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let listed = listing(vec![testkit::tool("get", "Gets.", &schema)]);
    let provider = Scripted::new(listed, |_| Ok(Reply::text(&ANSWER.repeat(3))));
    let upstream = Upstream::new("work", Arc::new(Ready { provider, tracer: tracer.clone() }));
    let mut parts = GatewayParts::new(vec![upstream], Arc::clone(&clock));
    let config = metrics::Config { n_tools: 200, version: String::new() };
    let figures: Option<Arc<dyn Sink>> = match case {
        "none" => None,
        "metrics" => Some(Arc::new(Figures::with_metrics(clock, &config))),
        _ => Some(Arc::new(Figures::new(clock, Collect::WhileRead(Duration::from_secs(60))))),
    };
    let traces = tracer.clone().map(|tracer| Arc::new(tracer) as Arc<dyn Sink>);
    if figures.is_some() {
        parts.observers.records = Arc::new(Fanout(figures.into_iter().chain(traces).collect()));
    }
    let gateway = Gateway::new(parts);
    let source = gateway.surface(Surface::Direct);
    let source = match &tracer {
        Some(tracer) => traced_source(tracer, source, Peer::default()),
        None => source,
    };
    let surface = source.provider_for(&Arc::new(Client::named("bench", "")), &Arc::default());
    while surface.listing().tools.iter().all(|tool| !tool.name.contains("get")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Watched { surface, tracer, _gateway: gateway }
}

impl Watched {
    async fn call(&self, calls: usize) {
        let tools = self.surface.listing();
        let name = tools.tools.iter().find(|tool| tool.name.contains("get"));
        let name = name.map(|tool| tool.name.clone()).unwrap_or_default();
        let context = Context::anonymous();
        for _ in 0..calls {
            let ask = Ask::Call(Call::new(&name, json!({"id": "1"}).into()));
            let answer = self.surface.ask(ask, &context).await;
            assert!(matches!(answer, Ok(Reply::Result(_))), "{answer:?}");
        }
        if let Some(tracer) = &self.tracer {
            // As the exporter does, which encodes them besides.
            tracer.discard();
        }
    }
}

/// Processor time of all threads so far.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own = |text: &str| text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0_u64);
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let nanos: u64 = all.map(|text| own(&text)).sum();
    Duration::from_nanos(nanos.max(own(&stat)))
}

fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    let (case, calls) = (words.next(), words.next().and_then(|n| n.parse().ok()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    if let (Some(case), Some(calls)) = (case, calls) {
        runtime.block_on(async { gate(&case).await.call(calls).await });
        return std::process::ExitCode::SUCCESS;
    }
    let (rounds, calls) = (21, 2_000);
    let gates: Vec<Watched> = CASES.iter().map(|case| runtime.block_on(gate(case))).collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); CASES.len()];
    for _ in 0..rounds {
        for (gate, times) in gates.iter().zip(&mut times) {
            let before = processor_time();
            runtime.block_on(gate.call(calls));
            // What was put off is done, and belongs to the calls.
            std::thread::sleep(Duration::from_millis(300));
            let took = processor_time().saturating_sub(before);
            times.push(took.as_secs_f64() * 1e6 / calls as f64);
        }
    }
    // Rounds run side by side, so what slows the machine slows both sides of a ratio.
    let ratios: Vec<f64> = times
        .iter()
        .map(|own| median(own.iter().zip(&times[0]).map(|(own, none)| own / none).collect()))
        .collect();
    for ((case, own), ratio) in CASES.iter().zip(&times).zip(&ratios) {
        println!("{case:<10} {:>8.2} µs a call   {ratio:>6.3} times", median(own.clone()));
    }
    let off = ratios[1];
    let (word, code) = match off <= MOST_OFF {
        true => ("fine", std::process::ExitCode::SUCCESS),
        false => ("FAILED", std::process::ExitCode::FAILURE),
    };
    println!("verdict: {word}: switched off, watching costs {off:.3} times ({MOST_OFF} at most)");
    code
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
