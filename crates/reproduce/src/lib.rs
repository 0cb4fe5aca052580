//! Reproduction of published results: claims of five papers, measured again on this machine and on
//! device models.
//!
//! | module | contents |
//! | --- | --- |
//! | [`claims`] | the claims of the papers and all their numbers, as data |
//! | [`workbench`] | counts, times and models of designs, at the scale of the run |
//! | [`speed`] | the throughput and the latency of a timed run |
//! | [`served`] | times of the papers' stores behind a server |
//! | [`papers`] | a measurement for each claim |
//! | [`experiments`] | experiments on other designs, or on trees in a particular state |
//! | [`interval`] | the 95 % interval of a measured number |
//! | [`rank`] | the rank correlation of two lists |
//! | [`rule`] | when a measured number agrees with a published one |
//! | [`verdict`] | published and measured numbers, compared |
//! | [`cost_model`] | a closed form for the time of an operation on a device |
//! | [`devices`] | all designs on all modelled devices, beside the cost model |
//! | [`advise`] | the best designs for a workload on a device, with the reason |
//! | [`pages`] | the report, drawn by `bristlecone-report` |

pub mod advise;
pub mod claims;
pub mod cost_model;
pub mod devices;
pub mod experiments;
pub mod interval;
pub mod pages;
pub mod papers;
pub mod rank;
pub mod rule;
pub mod served;
pub mod speed;
pub mod verdict;
pub mod workbench;
