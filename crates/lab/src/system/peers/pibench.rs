//! A tree in a shared library, behind the C++ interface of `PiBench`: `create_tree` gives an object
//! with five virtual functions.
//!
//! 1. A virtual call is made as the Itanium C++ ABI lays it down: the object begins with the
//!    address of its table, which has two destructors first and then the functions in the order of
//!    their declaration.
//! 2. Where the library tells the names of these functions, they are compared with what is expected
//!    before any is called: some branches of the interface declare others between them.
//! 3. `std::string` in the options is that of GNU's libstdc++ since GCC 5. A library that is built
//!    with another one reads options that are not there; nothing here can tell.
//! 4. Keys and values are words in the order of bytes of the machine, as `PiBench` makes them.
//! 5. What a library does to the memory of the process is its own affair. Its answers are checked.

#![expect(unsafe_code, reason = "calls into a shared library, through tables of C++ classes")]

use super::scan::read_all;
use super::site::Site;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, PoolFile, Session, System};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use std::error::Error;
use std::ffi::CString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An object of a class that is derived from `tree_api`.
#[repr(C)]
struct Object {
    functions: *const Functions,
}

type Destructor = unsafe extern "C-unwind" fn(*mut Object);
type Find = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, *mut u8) -> u8;
type Put = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, *const u8, usize) -> u8;
type Remove = unsafe extern "C-unwind" fn(*mut Object, *const u8, usize) -> u8;
type Scan =
    unsafe extern "C-unwind" fn(*mut Object, *const u8, usize, c_int, *mut *mut u8) -> c_int;
type Create = unsafe extern "C-unwind" fn(*const TreeOptions) -> *mut Object;

/// The virtual functions of `tree_api`, in their order.
#[derive(Clone, Copy)]
#[repr(C)]
struct Functions {
    destroy: Destructor,
    delete: Destructor,
    find: Find,
    insert: Put,
    update: Put,
    remove: Remove,
    scan: Scan,
}

/// `tree_options_t`.
#[repr(C)]
struct TreeOptions {
    key_bytes: usize,
    value_bytes: usize,
    pool_path: CppString,
    pool_bytes: usize,
    threads: usize,
}

/// A `std::string` that is only read, and that owns nothing.
#[repr(C)]
struct CppString {
    begin: *const c_char,
    length: usize,
    capacity: usize,
    /// The rest of the room that short strings are kept in.
    rest: usize,
}

const WORD_BYTES: usize = 8;
const PAIR_BYTES: usize = 2 * WORD_BYTES;

/// A tree, and the library that it is from.
pub(super) struct Library {
    tree: NonNull<Object>,
    functions: Functions,
    path: PathBuf,
    /// The tree's own pool, if it has made one.
    _pool: PoolFile,
    /// Last, for whoever drops the tree calls into it.
    _code: libloading::Library,
}

// SAFETY: the interface is for trees that many threads call at once, and `threads` of the options
// says how many will. The other fields are not changed.
unsafe impl Sync for Library {}

/// An error of the library at `path`.
fn refused(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> LabError {
    LabError::Peer { name: path.display().to_string(), source: source.into() }
}

/// What the system says about a library, which is the cause of what the loader says.
fn cause(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl Library {
    /// Loads the library at `path` and makes a tree.
    pub(super) fn load(path: &Path, site: &Site<'_>) -> Result<Self> {
        // Without a folder in it, a name would be searched among the system's libraries.
        let path = std::path::absolute(path)
            .map_err(|source| LabError::File { path: path.to_owned(), source })?;
        // SAFETY: whoever named the library wants its initialisers to run (5).
        let library = unsafe { libloading::Library::new(&path) }
            .map_err(|error| refused(&path, cause(&error)))?;
        // SAFETY: the interface says that a function of this name has this type.
        let create = unsafe { library.get::<Create>(b"create_tree") }
            .map_err(|error| refused(&path, cause(&error)))?;
        // It is removed at the end, so it must be the tree's.
        if site.pool.exists() {
            let path = site.pool.clone();
            return Err(LabError::File { path, source: ErrorKind::AlreadyExists.into() });
        }
        let pool = PoolFile::at(site.pool.clone());
        let text = CString::new(pool.path().as_os_str().as_bytes())
            .map_err(|error| refused(&path, error))?;
        let length = text.as_bytes().len();
        let options = TreeOptions {
            key_bytes: WORD_BYTES,
            value_bytes: WORD_BYTES,
            pool_path: CppString { begin: text.as_ptr(), length, capacity: length, rest: 0 },
            pool_bytes: site.pool_bytes as usize,
            threads: site.threads as usize,
        };
        // SAFETY: the options live until the call returns, and are as the library expects them (3).
        let tree = unsafe { create(&raw const options) };
        let tree =
            NonNull::new(tree).ok_or_else(|| refused(&path, "`create_tree` gave no tree"))?;
        // SAFETY: a tree begins with the address of its table (1).
        let table = unsafe { tree.read() }.functions;
        expect_functions(table).map_err(|text| refused(&path, text))?;
        // SAFETY: the table has these functions (1), as far as can be told (2).
        let functions = unsafe { table.read() };
        Ok(Self { tree, functions, _pool: pool, path, _code: library })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the tree was made by `create_tree`, and nobody uses it any more.
        unsafe { (self.functions.delete)(self.tree.as_ptr()) }
    }
}

/// The functions after the destructors, as their names stand in mangled ones.
const MANGLED: [&str; 5] = ["4find", "6insert", "6update", "6remove", "4scan"];
/// Of the destructors: one leaves the memory, one gives it back.
const DESTRUCTORS: usize = 2;

/// # Errors
/// The library tells the name of a function of `table`, and it is another one than expected.
fn expect_functions(table: *const Functions) -> core::result::Result<(), String> {
    for (index, expected) in MANGLED.iter().enumerate() {
        let place = table.cast::<*const c_void>().wrapping_add(DESTRUCTORS + index);
        // SAFETY: a table has at least as many functions as the interface declares, each a word
        // (1).
        let function = unsafe { place.read() };
        if let Some(name) = name_of(function)
            && !name.contains(expected)
        {
            let of = &expected[1..];
            return Err(format!("`{name}` stands where the supported interface has `{of}`"));
        }
    }
    Ok(())
}

/// The name of what begins at `address`, if its library tells.
fn name_of(address: *const c_void) -> Option<String> {
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: any address may be asked for; the answer is written to `found`.
    let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    if !known || found.dli_sname.is_null() || found.dli_saddr.cast_const() != address {
        return None;
    }
    // SAFETY: the name ends with a zero, and stays while the library is loaded, which it is.
    let name = unsafe { CStr::from_ptr(found.dli_sname) };
    Some(name.to_string_lossy().into_owned())
}

impl System for Library {
    type Session<'a> = LibrarySession<'a>;

    fn sessions(&mut self, threads: u64) -> Vec<LibrarySession<'_>> {
        (0..threads).map(|_| LibrarySession { library: self }).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

/// A thread that uses the tree.
pub(super) struct LibrarySession<'a> {
    library: &'a Library,
}

impl LibrarySession<'_> {
    fn put(&self, put: Put, key: u64, value: u64) -> bool {
        let (tree, key, value) = (self.library.tree, key.to_ne_bytes(), value.to_ne_bytes());
        // SAFETY: key and value are there during the call, of the lengths that are passed.
        let done =
            unsafe { put(tree.as_ptr(), key.as_ptr(), WORD_BYTES, value.as_ptr(), WORD_BYTES) };
        done != 0
    }
}

impl Session for LibrarySession<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let (find, tree) = (self.library.functions.find, self.library.tree);
        let (key, mut value) = (key.to_ne_bytes(), [0; WORD_BYTES]);
        // SAFETY: the key is there during the call; the value has room for as much as the options
        // say.
        let found = unsafe { find(tree.as_ptr(), key.as_ptr(), WORD_BYTES, value.as_mut_ptr()) };
        Ok((found != 0).then(|| u64::from_ne_bytes(value)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = self.get(key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.put(self.library.functions.insert, key, value))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.put(self.library.functions.update, key, value))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        let (remove, tree) = (self.library.functions.remove, self.library.tree);
        let key = key.to_ne_bytes();
        // SAFETY: the key is there during the call.
        Ok(unsafe { remove(tree.as_ptr(), key.as_ptr(), WORD_BYTES) } != 0)
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let (scan, tree) = (self.library.functions.scan, self.library.tree);
        let (key, mut begin) = (key.to_ne_bytes(), ptr::null_mut());
        let wanted = c_int::try_from(length).unwrap_or(c_int::MAX);
        // SAFETY: the key is there during the call, and so is the place for the address of the
        // pairs.
        let count =
            unsafe { scan(tree.as_ptr(), key.as_ptr(), WORD_BYTES, wanted, &raw mut begin) };
        if count == 0 {
            return Ok(0);
        }
        let count = usize::try_from(count).ok().filter(|&n| n <= length && !begin.is_null());
        let count = count.ok_or_else(|| {
            refused(&self.library.path, format!("a scan of {length} gave no pairs"))
        })?;
        // SAFETY: there are as many pairs, which nobody changes before the next scan of this
        // thread.
        let bytes = unsafe { core::slice::from_raw_parts(begin, count * PAIR_BYTES) };
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let pairs = bytes.chunks_exact(PAIR_BYTES).map(|pair| {
            let (key, value) = pair.split_at(WORD_BYTES);
            (word(key), word(value))
        });
        Ok(read_all(pairs, length))
    }
}
