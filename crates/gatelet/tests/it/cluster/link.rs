//! The network between a replica and the store, which a test can cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A way to a port of loopback. While it is cut, connections stay open and nothing passes.
pub(super) struct Link {
    address: SocketAddr,
    /// The port that new connections lead to.
    port: Arc<AtomicU16>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_cut: Mutex<bool>,
    mended: Condvar,
}

impl Link {
    pub(super) fn to(port: u16) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, gate) = (listener.local_addr().unwrap(), Arc::<Gate>::default());
        let port = Arc::new(AtomicU16::new(port));
        let (shared, to) = (Arc::clone(&gate), Arc::clone(&port));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if let Ok(far) = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst))) {
                    shared.join(near, far);
                }
            }
        });
        Link { address, port, gate }
    }

    /// Leads new connections to another port, as a name or a Sentinel does after a failover.
    pub(super) fn lead_to(&self, port: u16) {
        self.port.store(port, Ordering::SeqCst);
    }

    pub(super) fn url(&self) -> String {
        format!("valkey://{}", self.address)
    }

    pub(super) fn cut(&self) {
        *self.gate.is_cut.lock().unwrap() = true;
    }

    pub(super) fn mend(&self) {
        *self.gate.is_cut.lock().unwrap() = false;
        self.gate.mended.notify_all();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.mend();
    }
}

impl Gate {
    fn join(self: &Arc<Self>, near: TcpStream, far: TcpStream) {
        let (back, forth) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        for (from, to) in [(near, far), (forth, back)] {
            let gate = Arc::clone(self);
            std::thread::spawn(move || gate.pass(from, to));
        }
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 << 10];
        while let Ok(n_read @ 1..) = from.read(&mut bytes) {
            let is_cut = self.is_cut.lock().unwrap();
            drop(self.mended.wait_while(is_cut, |is_cut| *is_cut).unwrap());
            if to.write_all(&bytes[..n_read]).is_err() {
                break;
            }
        }
        // The other direction ends, too.
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
