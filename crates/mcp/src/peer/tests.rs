use std::sync::Mutex as StdMutex;

use futures::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::*;

/// Answers `echo` with its params, `later` too, `big` with 2,000 letters, never
/// answers `hang`, notes the rest.
#[derive(Default)]
struct Notebook {
    notes: StdMutex<Vec<String>>,
    n_garbage: std::sync::atomic::AtomicUsize,
}

impl Incoming for Notebook {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        async move {
            if request.method == "hang" {
                std::future::pending::<()>().await;
            }
            if request.method == "later" {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if request.method == "huge" {
                return Reply::Result(Json::encode(&vec!["x\n".repeat(1 << 20); 2]));
            }
            if request.method == "big" {
                return Reply::Result(Json::encode(&"x".repeat(2000)));
            }
            Reply::Result(request.params.unwrap_or_else(Json::null))
        }
        .boxed()
    }

    fn notification(&self, notification: Notification) {
        self.notes.lock().unwrap().push(notification.method);
    }

    fn invalid(&self, invalid: &Invalid, _: &[u8]) -> Option<RpcError> {
        self.n_garbage.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(invalid.to_error())
    }

    fn unexpected_response(&self, response: Response) {
        self.notes.lock().unwrap().push(format!("stray {}", response.id));
    }
}

struct Scene {
    peer: Peer,
    notebook: Arc<Notebook>,
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    running: tokio::task::JoinHandle<String>,
}

impl Scene {
    fn new(limits: Limits) -> Scene {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(ours);
        let peer = Peer::new(limits);
        let notebook = Arc::new(Notebook::default());
        let running = tokio::spawn(run(peer.clone(), read, write, notebook.clone() as _));
        let (read, write) = tokio::io::split(theirs);
        Scene { peer, notebook, read: BufReader::new(read), write, running }
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.read.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&self, method: &'static str) -> tokio::task::JoinHandle<Result<Reply, Failure>> {
        let peer = self.peer.clone();
        let timeouts = Timeouts { quiet: Duration::from_secs(60), whole: Duration::from_secs(100) };
        tokio::spawn(
            async move { peer.request(peer.next_request_id(), method, None, timeouts).await },
        )
    }
}

#[tokio::test]
async fn a_question_gets_the_answer_that_carries_its_number() {
    let mut scene = Scene::new(Limits::default());
    let first = scene.ask("a");
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    let second = scene.ask("b");
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":2,"method":"b"}"#);
    scene.say(r#"{"jsonrpc":"2.0","id":"2","result":2}"#).await;
    scene.say(r#"{"jsonrpc":"2.0","id":1,"result":1}"#).await;
    assert_eq!(first.await.unwrap(), Ok(Reply::Result(Json::encode(&1))));
    assert_eq!(second.await.unwrap(), Ok(Reply::Result(Json::encode(&2))));
}

#[tokio::test]
async fn a_damaged_answer_fails_its_question_at_once() {
    let mut scene = Scene::new(Limits::default());
    let question = scene.ask("a");
    scene.hear().await;
    scene.say(r#"{"jsonrpc":"2.0","id":1,"result":{"#).await;
    assert!(matches!(question.await.unwrap(), Err(Failure::Unusable { .. })));
}

#[tokio::test]
async fn a_batch_that_is_refused_fails_everybody_whose_answer_may_be_in_it() {
    let many = format!(r#"[{}{{"jsonrpc":"2.0","id":1,"result":1}}]"#, "1,".repeat(2000));
    let mut scene = Scene::new(Limits::default());
    let (first, second) = (scene.ask("a"), scene.ask("b"));
    scene.hear().await;
    scene.hear().await;
    scene.say("[INFO] a line of a log").await;
    assert!(!first.is_finished() && !second.is_finished());
    scene.say(&many).await;
    for question in [first, second] {
        let failed = question.await.unwrap();
        assert!(matches!(failed, Err(Failure::Unusable { .. })), "{failed:?}");
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_with_its_id_inside_fails_the_only_question() {
    let mut scene = Scene::new(Limits { line: 4096, ..Limits::default() });
    let question = scene.ask("a");
    scene.hear().await;
    let long = "x".repeat(5000);
    scene.say(&format!(r#"{{"result":"{long}","id":1,"jsonrpc":"2.0"}}"#)).await;
    assert!(matches!(question.await.unwrap(), Err(Failure::Unusable { .. })));
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_question_and_nothing_else() {
    let mut scene = Scene::new(Limits { line: 4096, ..Limits::default() });
    let question = scene.ask("a");
    scene.hear().await;
    let giant = format!(r#"{{"result":"{}","jsonrpc":"2.0","id":1}}"#, "x".repeat(200_000));
    scene.say(&giant).await;
    let Err(Failure::Unusable { reason }) = question.await.unwrap() else { panic!() };
    assert!(reason.ends_with("is over the limit of 4096"), "{reason}");
    scene.say(r#"{"id":7,"method":"echo","params":[1]}"#).await;
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#);
}

#[tokio::test]
async fn a_dropped_question_is_cancelled_at_the_other_side() {
    let mut scene = Scene::new(Limits::default());
    let question = scene.ask("a");
    scene.hear().await;
    question.abort();
    assert_eq!(
        scene.hear().await,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no longer wanted"}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn silence_runs_out_of_patience_and_progress_buys_time_up_to_a_limit() {
    let mut scene = Scene::new(Limits::default());
    let asked = Instant::now();
    let question = scene.ask("a");
    scene.hear().await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    scene.peer.note_activity(RequestId(1));
    let after = Duration::from_secs(100);
    assert_eq!(question.await.unwrap(), Err(Failure::Timeout { after }));
    assert_eq!(asked.elapsed().as_secs(), 100);
    assert!(scene.hear().await.contains("no answer in time"));
}

#[tokio::test]
async fn questions_from_the_other_side_are_answered_and_can_be_cancelled() {
    let mut scene = Scene::new(Limits::default());
    scene.say(r#"{"id":"x","method":"hang"}"#).await;
    scene.say(r#"{"id":1,"method":"echo","params":{"a":1e400}}"#).await;
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":1,"result":{"a":1e400}}"#);
    scene.say(r#"{"method":"notifications/cancelled","params":{"requestId":"x"}}"#).await;
    scene.say(r#"{"id":2,"method":"echo"}"#).await;
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":2,"result":null}"#);
    assert!(scene.notebook.notes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_batch_is_answered_with_a_batch() {
    let mut scene = Scene::new(Limits::default());
    scene.say(r#"[{"id":1,"method":"echo"},{"method":"n"},{"id":2,"method":"echo"}]"#).await;
    assert_eq!(
        scene.hear().await,
        r#"[{"jsonrpc":"2.0","id":1,"result":null},{"jsonrpc":"2.0","id":2,"result":null}]"#
    );
    assert_eq!(*scene.notebook.notes.lock().unwrap(), ["n"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_in_its_order_without_what_was_cancelled() {
    let mut scene = Scene::new(Limits::default());
    let question = |id: u8, method: &str| format!(r#"{{"id":{id},"method":"{method}"}}"#);
    let batch = [question(1, "later"), question(2, "hang"), question(3, "echo")].join(",");
    scene.say(&format!("[{batch}]")).await;
    scene.say(r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    let answer = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#);
    assert_eq!(scene.hear().await, format!("[{},{}]", answer(1), answer(3)));
    // Its id is free again, and nothing waits any more.
    scene.say(&question(2, "echo")).await;
    assert_eq!(scene.hear().await, answer(2));
}

#[tokio::test]
async fn garbage_and_answers_to_nothing_do_no_harm() {
    let mut scene = Scene::new(Limits::default());
    scene.say("npm WARN deprecated").await;
    assert!(scene.hear().await.contains(r#""id":null,"error":{"code":-32700"#));
    scene.say(r#"{"id":99,"result":{}}"#).await;
    scene.say(r#"{"id":1,"method":"echo"}"#).await;
    scene.hear().await;
    assert_eq!(*scene.notebook.notes.lock().unwrap(), ["stray 99"]);
}

#[tokio::test]
async fn too_many_open_questions_are_refused() {
    let mut scene = Scene::new(Limits { requests: 1, ..Limits::default() });
    scene.say(r#"{"id":1,"method":"hang"}"#).await;
    scene.say(r#"{"id":2,"method":"echo"}"#).await;
    assert!(scene.hear().await.contains("too many requests at once"));
}

#[tokio::test]
async fn an_id_that_is_being_answered_is_not_taken_twice() {
    let mut scene = Scene::new(Limits { requests: 2, ..Limits::default() });
    scene.say(r#"{"id":1,"method":"hang"}"#).await;
    scene.say(r#"{"id":1,"method":"echo"}"#).await;
    let refused = scene.hear().await;
    assert!(refused.contains(r#""id":1,"error":{"code":-32600"#), "{refused}");
    scene.say(r#"[{"id":2,"method":"echo"},{"id":2,"method":"echo"}]"#).await;
    assert!(scene.hear().await.contains("a request with the id 2 is being answered"));
    assert_eq!(scene.hear().await, r#"[{"jsonrpc":"2.0","id":2,"result":null}]"#);
    scene.say(r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    scene.say(r#"{"id":3,"method":"echo"}"#).await;
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
    scene.say(r#"{"id":1,"method":"echo"}"#).await;
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[tokio::test]
async fn when_the_other_side_stops_sending_what_was_asked_is_still_answered() {
    let mut scene = Scene::new(Limits::default());
    scene.say(r#"{"id":1,"method":"echo"}"#).await;
    scene.write.shutdown().await.unwrap();
    assert_eq!(scene.hear().await, r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    assert_eq!(scene.running.await.unwrap(), "the other side closed the connection");
}

#[tokio::test]
async fn a_lost_connection_says_whether_the_question_had_left() {
    let mut scene = Scene::new(Limits::default());
    let question = scene.ask("a");
    scene.hear().await;
    scene.peer.close("it was killed");
    let lost = |sent| Err(Failure::Lost { reason: "it was killed".to_owned(), sent });
    assert_eq!(question.await.unwrap(), lost(Sent::Perhaps));
    assert_eq!(scene.ask("b").await.unwrap(), lost(Sent::No));
    assert_eq!(scene.running.await.unwrap(), "it was killed");
}

#[tokio::test]
async fn a_reader_that_does_not_read_fills_the_queue_and_then_is_told_nothing() {
    let scene = Scene::new(Limits { queue: 1000, ..Limits::default() });
    let long = Json::encode(&"x".repeat(300_000));
    let said = (0..10).map(|_| scene.peer.notify("n", Some(&long)));
    assert!(said.into_iter().any(|said| matches!(said, Err(Failure::Unavailable { .. }))));
}

#[tokio::test]
async fn a_long_answer_leaves_whole_and_can_be_cancelled() {
    let mut scene = Scene::new(Limits::default());
    scene.say(r#"{"jsonrpc":"2.0","id":1,"method":"huge"}"#).await;
    scene.say(r#"{"jsonrpc":"2.0","id":2,"method":"echo","params":[2]}"#).await;
    // The short one need not wait until the long one is written.
    let lines = [scene.hear().await, scene.hear().await];
    let long = lines.iter().find(|line| line.contains("\"id\":1,")).unwrap();
    let told: serde_json::Value = serde_json::from_str(long).unwrap();
    assert_eq!(told["result"][1], "x\n".repeat(1 << 20));
    assert!(lines.contains(&r#"{"jsonrpc":"2.0","id":2,"result":[2]}"#.to_owned()));
    scene.say(r#"{"jsonrpc":"2.0","id":3,"method":"huge"}"#).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
    scene.say(cancel).await;
    scene.say(r#"{"jsonrpc":"2.0","id":4,"method":"echo"}"#).await;
    assert!(scene.hear().await.contains("\"id\":4,"), "the one that was cancelled is not sent");
}

#[tokio::test]
async fn who_asks_and_asks_and_never_reads_is_left() {
    let mut scene = Scene::new(Limits { answers: 1000, ..Limits::default() });
    let asked = async {
        let line = format!("{{\"id\":1,\"method\":\"echo\",\"params\":{:?}}}\n", "x".repeat(5000));
        while scene.write.write_all(line.as_bytes()).await.is_ok() {}
    };
    let (reason, ()) = tokio::join!(scene.running, asked);
    assert!(reason.unwrap().contains("it does not read"));
}

/// Lines without end, always ready.
struct Flood;

impl tokio::io::AsyncRead for Flood {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let room = buffer.remaining() / 6;
        buffer.put_slice("{\"a\"}\n".repeat(room).as_bytes());
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn somebody_who_sends_without_end_leaves_others_their_turns() {
    let (peer, notebook) = (Peer::new(Limits::default()), Arc::new(Notebook::default()));
    let flood = run(peer.clone(), Flood, tokio::io::sink(), notebook.clone() as _);
    let flood = tokio::spawn(flood);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let n_taken = notebook.n_garbage.load(std::sync::atomic::Ordering::Relaxed);
    assert!(0 < n_taken && n_taken <= 101 * LINES_PER_TURN, "{n_taken} lines in a hundred turns");
    flood.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_when_time_is_over_is_answered_with_an_error() {
    let mut scene = Scene::new(Limits::default());
    scene.say(r#"{"id":1,"method":"hang"}"#).await;
    scene.say(r#"[{"id":2,"method":"hang"},{"id":3,"method":"echo","params":[1]}]"#).await;
    // We are told to stop: nothing more is read, and there is time to answer.
    scene.write.shutdown().await.unwrap();
    let mut last = [scene.hear().await, scene.hear().await];
    last.sort_by_key(|line| line.starts_with('['));
    let [alone, batch] = last;
    assert!(alone.contains(r#""id":1,"error""#) && alone.contains("may have run"), "{alone}");
    assert!(batch.contains(r#""id":2,"error""#), "{batch}");
    assert!(batch.contains(r#""id":3,"result":[1]"#), "{batch}");
    assert_eq!(scene.running.await.unwrap(), "the other side closed the connection");
}

#[tokio::test]
async fn the_answers_of_a_batch_have_one_limit_together() {
    let mut scene = Scene::new(Limits { line: 4096, ..Limits::default() });
    let ask = |id: u8| format!(r#"{{"id":{id},"method":"big"}}"#);
    scene.say(&format!("[{},{},{}]", ask(1), ask(2), ask(3))).await;
    let answers: Vec<serde_json::Value> = serde_json::from_str(&scene.hear().await).unwrap();
    assert_eq!(answers.len(), 3);
    let refused: Vec<_> =
        answers.iter().filter_map(|one| one["error"]["message"].as_str()).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("ask one at a time"), "{refused:?}");
}
