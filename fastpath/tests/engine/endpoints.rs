//! Where a leader sends to: what the grant says, what it is told later, and what it cannot read.
use super::network::{Network, address, grant};
use quorumwire_fastpath::endpoint_at;
use quorumwire_interfaces::{Endpoint, Grant};
use std::net::SocketAddr;

fn of_another_kind() -> Endpoint {
    Endpoint::new("rkey 17 at 0x7f00").unwrap()
}

/// Where the next entry goes.
fn sent_to(network: &mut Network) -> Vec<SocketAddr> {
    network.submit(b"x");
    network.queue.drain(..).map(|flying| flying.to).collect()
}

#[test]
fn a_replica_is_reached_once_its_endpoint_is_one_of_this_kind() {
    let mut network = Network::new(3, 8);
    let mut grant: Grant = grant(3, 0);
    grant.peers[1].endpoint = None;
    grant.peers[2].endpoint = Some(of_another_kind());
    network.engines[0].engage(&grant).unwrap();
    let nowhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    assert_eq!(sent_to(&mut network), [nowhere, nowhere]);
    for slot in 1..3_u8 {
        let endpoint = endpoint_at(address(slot.into()));
        network.engines[0].set_peer(slot, &endpoint);
    }
    assert_eq!(sent_to(&mut network), [address(1), address(2)]);
    network.engines[0].set_peer(1, &of_another_kind());
    network.engines[0].set_peer(3, &endpoint_at(nowhere)); // no such slot
    assert_eq!(sent_to(&mut network), [address(1), address(2)]);
}
