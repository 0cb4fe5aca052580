//! The defects of `fast-fair-sp`.

defects! {
    fast_fair_sp;

    /// A descent does not follow the link to an inner node that has no separator yet.
    LinkIgnored = own_threads(
        "fast-fair-sp",
        "link-ignored",
        "a descent beside a split of an inner node takes the wrong leaf for the key's",
        "B-link trees",
    ),
}
