//! Giving up every capability.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

use super::{Failure, Step};

/// Empties all sets of capabilities: also for the administrator, who would get them back with the next program.
pub(super) fn drop_all() -> Result<(), Failure> {
    let held = capabilities(None).step("capabilities")?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..64 {
            match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
                // Beyond the last one that the kernel knows.
                Err(Errno::INVAL) => break,
                other => other.step("bounding set of capabilities")?,
            }
        }
        let bits = CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(bits).step("secure bits")?;
    }
    clear_ambient_capability_set().step("ambient capabilities")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).step("capabilities")
}

/// No program that is run may gain privileges.
pub(super) fn refuse_new() -> Result<(), Failure> {
    set_no_new_privs(true).step("no new privileges")
}
