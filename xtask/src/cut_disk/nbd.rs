//! The server's side of NBD, as far as a guest needs it: one connection, reads, writes, flushes.
//! The protocol is that of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.

use super::{Power, lock};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Mutex;

const MAGIC: &[u8] = b"NBDMAGIC";
const OPTION_MAGIC: &[u8] = b"IHAVEOPT";
const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Fixed newstyle negotiation, and no zeros after it.
const HANDSHAKE_FLAGS: u16 = 1 | 2;
/// The option that ends the negotiation. All others are refused.
const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_UNSUPPORTED: u32 = (1 << 31) | 1;
/// The export has flags, and takes flushes.
const EXPORT_FLAGS: u16 = 1 | 4;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const INVALID: u32 = 22;
/// The longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 32 << 20;

/// Serves the first connection until the power is cut or the guest ends.
pub(crate) fn serve(listener: &UnixListener, power: &Mutex<Power>) {
    let served = listener.accept().and_then(|(stream, _)| {
        let mut input = BufReader::new(stream.try_clone()?);
        negotiate(&mut input, &stream, lock(power).sectors.len() as u64)?;
        transmit(&mut input, &stream, power)?;
        // The connection stays open: to a guest without power its disk says nothing.
        std::thread::park();
        Ok(())
    });
    if let Err(error) = served
        && error.kind() != io::ErrorKind::UnexpectedEof
    {
        eprintln!("cut-disk: {error}");
    }
}

fn negotiate(input: &mut impl Read, mut output: &UnixStream, bytes: u64) -> io::Result<()> {
    output.write_all(&[MAGIC, OPTION_MAGIC, &HANDSHAKE_FLAGS.to_be_bytes()].concat())?;
    take::<4>(input)?; // The client's flags.
    loop {
        if take::<8>(input)? != OPTION_MAGIC {
            return Err(io::Error::other("the client sends no option"));
        }
        let option = u32::from_be_bytes(take(input)?);
        let length = u32::from_be_bytes(take(input)?);
        io::copy(&mut input.take(length.into()), &mut io::sink())?;
        if option == OPTION_EXPORT_NAME {
            return output
                .write_all(&[&bytes.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat());
        }
        let words = [option, OPTION_UNSUPPORTED, 0].map(u32::to_be_bytes);
        output
            .write_all(&[&OPTION_REPLY_MAGIC.to_be_bytes()[..], words.as_flattened()].concat())?;
    }
}

/// Answers requests until the power is cut or the client disconnects.
fn transmit(
    input: &mut impl Read,
    mut output: &UnixStream,
    power: &Mutex<Power>,
) -> io::Result<()> {
    let mut data = Vec::new();
    loop {
        if u32::from_be_bytes(take(input)?) != REQUEST_MAGIC {
            return Err(io::Error::other("the client sends no request"));
        }
        take::<2>(input)?; // Flags.
        let kind = u16::from_be_bytes(take(input)?);
        let handle = take::<8>(input)?;
        let at = u64::from_be_bytes(take(input)?) as usize;
        let bytes = u32::from_be_bytes(take(input)?) as usize;
        if kind == WRITE {
            if bytes > REQUEST_BYTES_MAX {
                return Err(io::Error::other("the client sends too much"));
            }
            data.resize(bytes, 0);
            input.read_exact(&mut data)?;
        }
        let mut power = lock(power);
        let found = match kind {
            DISCONNECT => return Ok(()),
            _ if power.is_cut() => return Ok(()),
            READ => power.sectors.read(at, bytes).map(<[u8]>::to_vec),
            WRITE => power.request().and_then(|sectors| sectors.write(at, &data)).map(|()| vec![]),
            FLUSH => power.flush().map(|()| vec![]),
            _ => None,
        };
        if power.is_cut() {
            return Ok(());
        }
        drop(power);
        let error = if found.is_some() { 0 } else { INVALID };
        let head = [REPLY_MAGIC, error].map(u32::to_be_bytes);
        output.write_all(&[head.as_flattened(), &handle, &found.unwrap_or_default()].concat())?;
    }
}

/// Reads `COUNT` bytes.
fn take<const COUNT: usize>(input: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}
