// SPDX-License-Identifier: MIT

//! Hello world on may_minihttp, which runs a coroutine per connection on a few threads. It is a
//! benchmark's server more than a user's: it heeds neither HTTP/1.0 nor `Connection: close`, so a
//! client that waits for the end of the connection waits in vain.

use std::{env, io};

use may_minihttp::{HttpServer, HttpService, Request, Response};

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn number<T: std::str::FromStr>(name: &str) -> T {
    setting(name).parse().unwrap_or_else(|_| panic!("{name} is no number"))
}

#[derive(Clone)]
struct Hello {
    body: &'static str,
}

impl HttpService for Hello {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        response.header("Content-Type: text/plain");
        // The library leaves it to its user that an answer to HEAD has no body.
        if request.method() != "HEAD" {
            response.body(self.body);
        }
        Ok(())
    }
}

fn main() -> io::Result<()> {
    may::config().set_workers(number("WORKERS"));
    let address = (setting("HOST").replace("localhost", "127.0.0.1"), number::<u16>("PORT"));
    // A body without a copy must live as long as the program.
    let body = setting("BODY").leak();
    let server = HttpServer(Hello { body }).start((address.0.as_str(), address.1))?;
    server.join().expect("the server never ends by itself");
    Ok(())
}
