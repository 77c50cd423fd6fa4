//! Where a connected replica is reached, as it said when it connected.
use super::super::groups::GROUPS_MAX;
use quorumwire_interfaces::Endpoint;
use quorumwire_wire::peer::{FurtherGroup, Hello};

/// Addresses that a connected replica said it has.
#[derive(Clone, Debug, Default)]
pub struct PeerInfo {
    /// Where other replicas connect; empty: it did not say.
    pub peer: String,
    /// Where memcached clients connect; the others have ports of their own.
    pub client: String,
    /// Where Redis clients connect.
    pub redis: String,
    /// Where clients of the native protocol connect, by group.
    pub native: Vec<String>,
    /// Where it reports its status.
    pub http: String,
    /// Where its data planes listen, by group; `None`: it has none.
    pub planes: Vec<Option<Endpoint>>,
}

impl PeerInfo {
    /// Where the data plane of the group at this place listens.
    pub fn plane(&self, place: usize) -> Option<&Endpoint> {
        self.planes.get(place)?.as_ref()
    }
}

impl From<Hello> for PeerInfo {
    fn from(hello: Hello) -> Self {
        let plane = Endpoint::new(&hello.plane_address);
        let further = &hello.further_groups;
        Self {
            planes: of_groups(plane, further, |it| Endpoint::new(&it.plane_address)),
            native: of_groups(hello.native_address, further, |it| {
                it.native_address.clone()
            }),
            peer: hello.peer_address,
            client: hello.client_address,
            redis: hello.redis_address,
            http: hello.http_address,
        }
    }
}

/// What a hello says of each group: of the first, and of those behind it, as many as a server has at most.
fn of_groups<T>(first: T, further: &[FurtherGroup], of: impl Fn(&FurtherGroup) -> T) -> Vec<T> {
    let further = further.iter().take(GROUPS_MAX - 1).map(of);
    [first].into_iter().chain(further).collect()
}
