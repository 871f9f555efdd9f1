//! Seals: the head of a tree, signed with the home's key.
//!
//! The head is a rolling hash over the operation records, which name the chain hashes of the nodes they
//! made. A seal makes recomputed hashes, removed nodes and a shortened log show to whoever has the public key
//! (spec: loom §6, security §12). It says nothing about who wrote a text or when.

use data_encoding::HEXLOWER;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{Millis, Seq, TreeId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The last operation it covers.
    pub seq: Seq,
    pub head: Digest,
    /// The public key, hexadecimal.
    pub key: String,
    /// The signature, hexadecimal.
    pub signature: String,
    /// When, for people.
    pub at: Millis,
}

/// The head before the first operation.
pub fn first_head(tree: TreeId) -> Digest {
    Digest::of_parts("drawloom.head", &[&tree.to_bytes()])
}

/// The head after a record with this hash.
pub fn next_head(head: Digest, record: Digest) -> Digest {
    Digest::of_parts("drawloom.head", &[&head.0, &record.0])
}

fn message(tree: TreeId, seq: Seq, head: Digest, at: Millis) -> Digest {
    Digest::of_parts("drawloom.seal", &[&tree.to_bytes(), &seq.0.to_be_bytes(), &head.0, &at.0.to_be_bytes()])
}

/// Signs a head with a 32-byte Ed25519 secret.
pub fn sign(secret: &[u8; 32], tree: TreeId, seq: Seq, head: Digest, at: Millis) -> Seal {
    let key = SigningKey::from_bytes(secret);
    let signature = key.sign(&message(tree, seq, head, at).0);
    Seal {
        seq,
        head,
        key: HEXLOWER.encode(key.verifying_key().as_bytes()),
        signature: HEXLOWER.encode(&signature.to_bytes()),
        at,
    }
}

/// Whether the signature of a seal is that of its own key over its own head.
pub fn is_signed(seal: &Seal, tree: TreeId) -> bool {
    let Some(key) = bytes(&seal.key).and_then(|key| VerifyingKey::from_bytes(&key).ok()) else {
        return false;
    };
    let Some(signature) = bytes(&seal.signature).map(|signature| Signature::from_bytes(&signature)) else {
        return false;
    };
    key.verify_strict(&message(tree, seal.seq, seal.head, seal.at).0, &signature).is_ok()
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_its_head_only() {
        let tree = TreeId::from_bytes([3; 16]);
        let head = next_head(first_head(tree), Digest::of(b"record"));
        let seal = sign(&[9; 32], tree, Seq(1), head, Millis(5));
        assert!(is_signed(&seal, tree));
        assert!(!is_signed(&Seal { head: Digest::ZERO, ..seal.clone() }, tree));
        assert!(!is_signed(&Seal { seq: Seq(2), ..seal.clone() }, tree));
        assert!(!is_signed(&seal, TreeId::from_bytes([4; 16])));
        assert!(!is_signed(&Seal { signature: "00".into(), ..seal }, tree));
    }
}
