//! The macros that make one enumeration of the defects in several files.

/// Defines the macro `$file`, which adds the defects of a file to those before it.
macro_rules! defects {
    ($file:ident; $($defects:tt)*) => {
        macro_rules! $file {
            ($before:tt $files:tt) => {
                gather! { $before { $($defects)* } $files }
            };
        }
    };
}

/// Declares the defects of all `$files` in their order.
macro_rules! gather {
    ({ $($before:tt)* } { $($new:tt)* } { $file:ident $($files:ident)* }) => {
        $file! { { $($before)* $($new)* } { $($files)* } }
    };
    ({ $($before:tt)* } { $($new:tt)* } {}) => {
        declare! { $($before)* $($new)* }
    };
}

/// Declares the enumeration and its records.
macro_rules! declare {
    ($($(#[$doc:meta])* $defect:ident = $about:expr,)*) => {
        /// A published defect, named by the step that is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Defect {
            $($(#[$doc])* $defect,)*
        }

        /// The records of all defects, in the order of the enumeration.
        const RECORDS: &[About] = &[$($about),*];

        impl Defect {
            /// All defects, in the order of the enumeration.
            pub const ALL: [Self; RECORDS.len()] = [$(Self::$defect),*];

            /// Returns the record of this defect.
            pub const fn about(self) -> About {
                RECORDS[self as usize]
            }
        }
    };
}
