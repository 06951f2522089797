// SPDX-License-Identifier: MIT

//! Hello world on ntex: a worker thread per core, each with an event loop of its own.

use std::env;

use ntex::util::Bytes;
use ntex::web::{self, App, HttpResponse, HttpServer};

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn number<T: std::str::FromStr>(name: &str) -> T {
    setting(name).parse().unwrap_or_else(|_| panic!("{name} is no number"))
}

async fn hello(body: web::types::State<Bytes>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain")
        .body(Bytes::clone(&body))
}

#[ntex::main]
async fn main() -> std::io::Result<()> {
    let body = Bytes::from(setting("BODY"));
    HttpServer::new(async move || {
        App::new()
            .state(body.clone())
            .default_service(web::to(hello))
    })
    .workers(number("WORKERS"))
    .bind((setting("HOST"), number("PORT")))?
    .run()
    .await
}
