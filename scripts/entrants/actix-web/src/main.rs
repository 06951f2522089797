// SPDX-License-Identifier: MIT

//! Hello world on Actix Web: a worker thread per core, each with an event loop of its own.

use std::env;

use actix_web::http::header::ContentType;
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpResponse, HttpServer};

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn number<T: std::str::FromStr>(name: &str) -> T {
    setting(name).parse().unwrap_or_else(|_| panic!("{name} is no number"))
}

async fn hello(body: web::Data<Bytes>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(ContentType::plaintext())
        .body(Bytes::clone(&body))
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let body = web::Data::new(Bytes::from(setting("BODY")));
    HttpServer::new(move || {
        App::new()
            .app_data(body.clone())
            .default_service(web::to(hello))
    })
    .workers(number("WORKERS"))
    .bind((setting("HOST"), number("PORT")))?
    .run()
    .await
}
