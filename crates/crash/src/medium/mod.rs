//! The simulated media: each is a `Simulation` that a pool runs on.
//!
//! | module | contents |
//! | --- | --- |
//! | `arena` | the words of a medium |
//! | `recorder` | records the pre-failure execution of one thread |
//! | `scheduled`, `turns` | records an execution of several threads, which it switches |
//! | `lazy_image` | a crash image that fixes the value of a word when recovery first reads it |
//! | `cut` | loses every store after a given number |
//! | `fault` | refuses allocations, corrupts words, ends runs that never end |

pub(crate) mod arena;
pub(crate) mod cut;
pub(crate) mod fault;
pub(crate) mod lazy_image;
pub(crate) mod recorder;
pub(crate) mod scheduled;
pub(crate) mod turns;
