//! Lookups of names: a seam, so that tests answer them.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// Addresses that a name was found at.
pub(crate) type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// What looks names up.
pub trait Resolve: Send + Sync {
    /// The addresses of a name.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The system's own lookup.
pub(crate) struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            // A name with a port, as the system's lookup wants one.
            Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
        })
    }
}
