//! The effect of an instruction on memory, from its bytes and the registers.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, Register, UsedMemory,
};
use nix::libc::user_regs_struct as Registers;
use std::collections::BTreeMap;

/// The greatest length of an instruction.
pub(super) const INSTRUCTION_BYTES: usize = 15;
const ZERO_FLAG: u64 = 1 << 6;

/// The kind of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Decoded {
    /// An instruction that touches no memory, or reads it.
    Other,
    /// An instruction that may store.
    Stores(Box<Stores>),
    /// An instruction that writes a line back.
    Flush(Instruction),
    /// `sfence`. Other instructions that order as much, `mfence` and locked ones, are not those of
    /// a medium's fence; no code may rely on them.
    Fence,
}

/// An instruction that may store, with the memory that it stores to.
#[derive(Clone, Debug)]
pub(super) struct Stores {
    instruction: Instruction,
    targets: Vec<UsedMemory>,
}

/// A range of bytes that an instruction is about to store to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// Decodes the instruction at `address`.
pub(super) fn decode(bytes: &[u8], address: u64) -> Decoded {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if let Some(orders) = orders(&instruction) {
        return orders;
    }
    let mut factory = InstructionInfoFactory::new();
    let options = InstructionInfoOptions::NO_REGISTER_USAGE;
    let stores = |memory: &&UsedMemory| {
        use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
        matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
    };
    let info = factory.info_options(&instruction, options);
    let targets: Vec<UsedMemory> = info.used_memory().iter().filter(stores).copied().collect();
    if targets.is_empty() {
        return Decoded::Other;
    }
    Decoded::Stores(Box::new(Stores { instruction, targets }))
}

/// Returns all instructions of a program's `text` that write back or fence, by address. Code of
/// x86-64 contains no data, so one instruction begins at the end of the one before.
pub(super) fn sites(text: &[u8], start: u64) -> BTreeMap<u64, Decoded> {
    let decoder = Decoder::with_ip(64, text, start, DecoderOptions::NONE);
    decoder.into_iter().filter_map(|found| Some((found.ip(), orders(&found)?))).collect()
}

fn orders(instruction: &Instruction) -> Option<Decoded> {
    match instruction.code() {
        Code::Clwb_m8 | Code::Clflushopt_m8 | Code::Clflush_m8 => {
            Some(Decoded::Flush(*instruction))
        }
        Code::Sfence => Some(Decoded::Fence),
        _ => None,
    }
}

/// Returns the address whose line the instruction writes back.
pub(super) fn flushed(instruction: &Instruction, registers: &Registers) -> Option<u64> {
    instruction.virtual_address(0, 0, |register, _, _| value_of(register, registers))
}

impl Stores {
    /// Returns the memory that the instruction is about to store to. A repeated instruction is
    /// stepped one iteration at a time.
    pub(super) fn targets(&self, registers: &Registers) -> Vec<Target> {
        let instruction = &self.instruction;
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        if repeats && instruction.is_string_instruction() && registers.rcx == 0 {
            return Vec::new();
        }
        let target = |memory: &UsedMemory| {
            let address = memory.virtual_address(0, |register, _, _| value_of(register, registers));
            let sizes = [memory.memory_size().size(), instruction.memory_size().size()];
            let bytes = sizes.into_iter().find(|&bytes| bytes > 0).unwrap_or(1) as u64;
            Some(Target { address: address?, bytes })
        };
        self.targets.iter().filter_map(target).collect()
    }

    /// Returns `true` if the store bypasses the cache.
    pub(super) fn is_streamed(&self) -> bool {
        use Mnemonic::{
            Maskmovdqu, Maskmovq, Movntdq, Movnti, Movntpd, Movntps, Movntq, Vmaskmovdqu, Vmovntdq,
            Vmovntpd, Vmovntps,
        };
        matches!(
            self.instruction.mnemonic(),
            Maskmovdqu
                | Maskmovq
                | Movntdq
                | Movnti
                | Movntpd
                | Movntps
                | Movntq
                | Vmaskmovdqu
                | Vmovntdq
                | Vmovntpd
                | Vmovntps
        )
    }

    /// Returns `true` if the instruction did not store, which `flags` show after it: its comparison
    /// failed.
    pub(super) fn has_refrained(&self, flags: u64) -> bool {
        let compares = matches!(
            self.instruction.mnemonic(),
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
        );
        compares && flags & ZERO_FLAG == 0
    }
}

fn value_of(register: Register, registers: &Registers) -> Option<u64> {
    let whole = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None, // A vector of addresses: what a scatter stores is found at the next fence.
    };
    Some(if register.size() == 4 { whole & 0xffff_ffff } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> Registers {
        Registers {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0x1000,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 3,
            rcx: 0,
            rdx: 0,
            rsi: 0x3000,
            rdi: 0x2000,
            orig_rax: 0,
            rip: 0,
            cs: 0,
            eflags: 0,
            rsp: 0x8000,
            ss: 0,
            fs_base: 0x7000,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    fn stores(bytes: &[u8]) -> Stores {
        match decode(bytes, 0x400) {
            Decoded::Stores(stores) => *stores,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flushes_and_fences_are_told_apart() {
        let flush = |bytes: &[u8]| match decode(bytes, 0) {
            Decoded::Flush(instruction) => flushed(&instruction, &registers()),
            other => panic!("{other:?}"),
        };
        assert_eq!(flush(&[0x66, 0x0f, 0xae, 0x33]), Some(0x1000)); // clwb [rbx]
        assert_eq!(flush(&[0x66, 0x0f, 0xae, 0x7b, 0x40]), Some(0x1040)); // clflushopt [rbx + 64]
        assert_eq!(flush(&[0x0f, 0xae, 0x3b]), Some(0x1000)); // clflush [rbx]
        assert!(matches!(decode(&[0x0f, 0xae, 0xf8], 0), Decoded::Fence)); // sfence
        assert!(matches!(decode(&[0x0f, 0xae, 0xf0], 0), Decoded::Other)); // mfence
        assert!(matches!(decode(&[0x48, 0x8b, 0x03], 0), Decoded::Other)); // mov rax, [rbx]
    }

    #[test]
    fn stores_have_address_width_and_kind() {
        let at = |bytes: &[u8]| stores(bytes).targets(&registers());
        let target = |address, bytes| vec![Target { address, bytes }];
        assert_eq!(at(&[0x48, 0x89, 0x44, 0xc3, 8]), target(0x1020, 8)); // mov [rbx + rax * 8 + 8], rax
        assert_eq!(at(&[0xc6, 0x03, 1]), target(0x1000, 1)); // mov byte [rbx], 1
        assert_eq!(at(&[0x50]), target(0x7ff8, 8)); // push rax
        assert_eq!(at(&[0xc5, 0xfe, 0x7f, 0x03]), target(0x1000, 32)); // vmovdqu [rbx], ymm0
        assert_eq!(at(&[0x64, 0x48, 0x89, 0x03]), target(0x8000, 8)); // mov fs:[rbx], rax
        let streamed = stores(&[0x48, 0x0f, 0xc3, 0x03]); // movnti [rbx], rax
        assert!(streamed.is_streamed() && !stores(&[0x48, 0x89, 0x03]).is_streamed());
        assert_eq!(streamed.targets(&registers()), target(0x1000, 8));
    }

    #[test]
    fn a_text_is_searched_from_instruction_to_instruction() {
        // sfence; mov eax, 0xf8ae0f (which holds the bytes of a fence); clwb [rbx]; ret
        let text = [0x0f, 0xae, 0xf8, 0xb8, 0x0f, 0xae, 0xf8, 0, 0x66, 0x0f, 0xae, 0x33, 0xc3];
        let found = sites(&text, 0x1000);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0x1000, 0x1008]);
        assert!(matches!(found[&0x1000], Decoded::Fence));
        assert!(matches!(found[&0x1008], Decoded::Flush(_)));
    }

    #[test]
    fn what_repeats_or_compares_may_not_store() {
        let move_bytes = stores(&[0xf3, 0xa4]); // rep movsb
        assert_eq!(move_bytes.targets(&registers()), []);
        let once = Registers { rcx: 5, ..registers() };
        assert_eq!(move_bytes.targets(&once), [Target { address: 0x2000, bytes: 1 }]);
        let compare = stores(&[0xf0, 0x48, 0x0f, 0xb1, 0x13]); // lock cmpxchg [rbx], rdx
        assert_eq!(compare.targets(&registers()), [Target { address: 0x1000, bytes: 8 }]);
        assert!(compare.has_refrained(0) && !compare.has_refrained(ZERO_FLAG));
        assert!(!stores(&[0x48, 0x87, 0x03]).has_refrained(0)); // xchg [rbx], rax
    }
}
