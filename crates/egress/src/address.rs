//! Addresses that nobody on the public network has: of this machine, of its networks, of no one (cases: X29).
//!
//! What is not known to be public is not: of IPv6 only the global unicast block is, less what lies in it for other uses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Why an address is none of the public network; none of one that is.
pub(crate) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "it means this network",
        [127, ..] => "it is this machine",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "it is of a private network",
        [100, 64..=127, ..] => "it is of a carrier's network",
        [169, 254, ..] => "it is link-local, where cloud machines ask for their keys",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "it is for documentation",
        [192, 0, 0, _] | [192, 88, 99, _] => "it is for protocols",
        [198, 18 | 19, ..] => "it is for benchmarks",
        [224..=239, ..] => "it is multicast",
        [240..=255, ..] => "it is reserved",
        _ => return None,
    })
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 0] => return Some("it means this network"),
        [0, 0, 0, 0, 0, 0, 0, 1] => return Some("it is this machine"),
        // An IPv4 address in another spelling, mapped or behind NAT64, is what it is.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let [.., a, b, c, d] = address.octets();
            return not_public_v4(Ipv4Addr::new(a, b, c, d));
        }
        _ => {}
    }
    Some(match parts {
        [0x64, 0xff9b, ..] => "it is of a private network, behind a translation",
        [0xfc00..=0xfdff, ..] => "it is of a private network",
        [0xfe80..=0xfebf, ..] => "it is link-local",
        [0xff00..=0xffff, ..] => "it is multicast",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "it is for documentation",
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] => "it is for protocols, or a tunnel to another address",
        [0x2000..=0x3fff, ..] => return None,
        _ => "it is reserved",
    })
}

/// Whether an address is one of this machine's, a public one included: only such can be bound. Nothing is sent.
pub(crate) fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address.to_canonical(), 0)).is_ok()
}
