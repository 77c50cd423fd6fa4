//! Who decides values: a replicated group, or a Paxos deployment. The configuration says which; the functions
//! are the same.
use crate::configuration::{Configuration, Decider};
use crate::error::{Code, Failure};
use crate::replica::Replica;
use quorumwire_client::deliver::{self, Begin, Delivery, Instance, Learner, Recovered, Values};
use quorumwire_paxos_process::{
    DeploymentFile, Member, MemberError, MemberOptions, Recovered as Found, VALUE_BYTES_MAX,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// Who decides.
pub enum Backend {
    /// A replicated group, asked at any replica.
    Replicas {
        values: Box<Values>,
        window_bytes: u64,
        /// The one that runs in this program, until that is closed.
        inside: Mutex<Option<Replica>>,
    },
    /// A Paxos deployment, of which this is a learner with a proposer.
    Deployment {
        member: Arc<Member>,
        learner: u8,
        only_submits: bool,
    },
}

/// Values that come.
pub enum Deliveries {
    Replicas(deliver::Deliveries),
    Deployment { member: Arc<Member>, from: Instance },
}

impl Backend {
    /// Connects, or joins. `ring` is called when there may be something to take.
    pub fn open(
        configuration: Configuration,
        ring: impl Fn() + Send + 'static,
    ) -> Result<Self, Failure> {
        let Configuration {
            decider,
            window_bytes,
        } = configuration;
        match decider {
            Decider::Replicas(mut settings, inside) => {
                let inside = match inside {
                    None => None,
                    Some(options) => {
                        let listens = options.listen_client.to_string();
                        let replica = Replica::start(*options, ring)?;
                        settings.addresses.retain(|address| *address != listens);
                        settings.addresses.insert(0, replica.address.to_string());
                        Some(replica)
                    }
                };
                // An argument of its is one of the configuration.
                let values = Values::connect(&settings).map_err(|error| {
                    let mut failure = Failure::from(error);
                    if failure.code == Code::Argument {
                        failure.code = Code::Configuration;
                    }
                    failure
                })?;
                Ok(Self::Replicas {
                    values: Box::new(values),
                    window_bytes,
                    inside: Mutex::new(inside),
                })
            }
            Decider::Deployment(given) => {
                let wrong = |text: String| Failure::new(Code::Configuration, text);
                let deployment = DeploymentFile::load(&given.file);
                let deployment = deployment.map_err(|error| wrong(error.to_string()))?;
                let options = MemberOptions {
                    only_submits: given.only_submits,
                    window_bytes: usize::try_from(window_bytes).unwrap_or(usize::MAX),
                    deadline: given.deadline,
                    busy_poll: given.busy_poll,
                    ..MemberOptions::new(deployment, given.learner, given.dir)
                };
                let member = Member::open(&options).map_err(|error| {
                    let mut failure = Failure::from(error);
                    if matches!(failure.code, Code::NoLearner | Code::Internal) {
                        failure.code = Code::Configuration;
                    }
                    failure
                })?;
                member.listen(ring);
                Ok(Self::Deployment {
                    member: Arc::new(member),
                    learner: given.learner,
                    only_submits: given.only_submits,
                })
            }
        }
    }

    /// An error if the replica in this program has ended.
    pub fn must_live(&self) -> Result<(), Failure> {
        match self {
            Self::Replicas { inside, .. } => {
                let inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
                inside.as_ref().map_or(Ok(()), Replica::must_live)
            }
            Self::Deployment { .. } => Ok(()),
        }
    }

    /// The longest value.
    pub fn value_bytes_max(&self) -> usize {
        match self {
            Self::Replicas { .. } => deliver::VALUE_BYTES_MAX,
            Self::Deployment { .. } => VALUE_BYTES_MAX,
        }
    }

    /// Ends what waits in calls of other threads, and the replica in this program.
    pub fn close(&self) {
        match self {
            Self::Replicas { values, inside, .. } => {
                values.close();
                let replica = inside.lock().unwrap_or_else(PoisonError::into_inner).take();
                drop(replica); // it may take a while
            }
            Self::Deployment { member, .. } => member.close(),
        }
    }

    /// Submits a value; `done` is called on another thread.
    pub fn submit_then(
        &self,
        value: Vec<u8>,
        done: impl FnOnce(Result<Instance, Failure>) + Send + 'static,
    ) -> Result<(), Failure> {
        match self {
            Self::Replicas { values, .. } => {
                values.submit_then(value, |outcome| done(outcome.map_err(Failure::from)));
            }
            Self::Deployment { member, .. } => {
                member.submit_then(value, |outcome| done(outcome.map_err(Failure::from)))?;
            }
        }
        Ok(())
    }

    /// Submits a value and waits.
    pub fn submit(&self, value: &[u8]) -> Result<Instance, Failure> {
        Ok(match self {
            Self::Replicas { values, .. } => values.submit(value)?,
            Self::Deployment { member, .. } => member.submit(value)?,
        })
    }

    /// Values for this learner; from 0: behind its checkpoint.
    pub fn deliver(&self, learner: Learner, from: Instance) -> Result<Deliveries, Failure> {
        match self {
            Self::Replicas {
                values,
                window_bytes,
                ..
            } => {
                let begin = match from {
                    0 => Begin::AtCheckpoint,
                    from => Begin::At(from),
                };
                let deliveries = values.deliver_within(learner, begin, *window_bytes)?;
                Ok(Deliveries::Replicas(deliveries))
            }
            Self::Deployment {
                only_submits: true, ..
            } => {
                let text = "the configuration says only_submits: it is given no values";
                Err(Failure::new(Code::Argument, text))
            }
            Self::Deployment { member, .. } => {
                self.must_be(learner)?;
                let taken = member.taken();
                if from > 0 && from <= taken {
                    let text = format!(
                        "this learner was given, or has checkpointed, instance {taken}: open anew"
                    );
                    return Err(Failure::new(Code::Trimmed, text));
                }
                let member = Arc::clone(member);
                Ok(Deliveries::Deployment { member, from })
            }
        }
    }

    /// Whether deliveries from 0 on go on behind what earlier ones gave, not behind the checkpoint.
    pub fn gives_once(&self) -> bool {
        matches!(self, Self::Deployment { .. })
    }

    /// A deployment has this learner only.
    fn must_be(&self, learner: Learner) -> Result<(), Failure> {
        match self {
            Self::Deployment { learner: own, .. } if Learner::from(*own) != learner => {
                let text = format!("the configuration is of learner {own}, not of {learner}");
                Err(Failure::new(Code::NoLearner, text))
            }
            Self::Deployment { .. } | Self::Replicas { .. } => Ok(()),
        }
    }

    /// What is known of an instance; a deployment decides a no-op if nothing is.
    pub fn recover(&self, instance: Instance) -> Result<Recovered, Failure> {
        match self {
            Self::Replicas { values, .. } => Ok(values.recover(instance)?),
            Self::Deployment { member, .. } => match member.recover(instance, b"") {
                Ok(Found::Value(value)) => Ok(Recovered::Decided(value)),
                Ok(Found::NoOp(_) | Found::NoValue) => Ok(Recovered::NoOp),
                Err(MemberError::Behind { upto }) => Ok(Recovered::Trimmed(upto)),
                Err(MemberError::TooFar { first, .. }) => Ok(Recovered::NotDecided(first - 1)),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// A learner's checkpoint; what is trimmed then, if that is known.
    pub fn checkpoint(&self, learner: Learner, upto: Instance) -> Result<Instance, Failure> {
        match self {
            Self::Replicas { values, .. } => Ok(values.checkpoint(learner, upto)?),
            Self::Deployment { member, .. } => {
                self.must_be(learner)?;
                member.checkpoint(upto)?;
                Ok(0)
            }
        }
    }

    /// Nobody is given what stands up to there any more; what is trimmed then.
    pub fn declare_lost(&self, upto: Instance) -> Result<Instance, Failure> {
        match self {
            Self::Replicas { values, .. } => Ok(values.declare_lost(upto)?),
            Self::Deployment { .. } => {
                let text = "in a Paxos deployment an operator says so to each switch: \
                            `quorumwire switch --declare-lost`";
                Err(Failure::new(Code::Argument, text))
            }
        }
    }
}

impl Deliveries {
    /// The next one, if it is there; else the bell is rung when it may be.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Delivery, Failure>>> {
        match self {
            Self::Replicas(deliveries) => deliveries
                .poll(context)
                .map(|next| next.map(|it| it.map_err(Failure::from))),
            Self::Deployment { member, from } => loop {
                match member.next_within(Duration::ZERO) {
                    Ok(Some((instance, _))) if instance < *from => {}
                    Ok(Some(next)) => return Poll::Ready(Some(Ok(next))),
                    Ok(None) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                }
            },
        }
    }
}
