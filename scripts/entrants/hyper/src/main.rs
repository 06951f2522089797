// SPDX-License-Identifier: MIT

//! Hello world on hyper 1, written as hyper's guide does: a task per connection on Tokio's threads.

use std::convert::Infallible;
use std::env;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Left alone, "localhost" would be the one address that the resolver names first, often ::1.
fn address() -> (String, u16) {
    let host = setting("HOST").replace("localhost", "127.0.0.1");
    (host, setting("PORT").parse().expect("PORT is a number"))
}

// The number of threads is in TOKIO_WORKER_THREADS.
#[tokio::main]
async fn main() -> std::io::Result<()> {
    let body = Bytes::from(setting("BODY"));
    let listener = TcpListener::bind(address()).await?;
    loop {
        // Fails for one client that is gone already, or while there is no file descriptor free.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // Without it, the second of two pipelined answers may wait for the first one's ACK.
        stream.set_nodelay(true).ok();
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_: Request<Incoming>| {
                let mut response = Response::new(Full::new(body.clone()));
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
                async move { Ok::<_, Infallible>(response) }
            });
            // An error here is the client's: it broke off, or it did not speak HTTP.
            http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}
