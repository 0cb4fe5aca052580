#!/usr/bin/env bash
# Boots a guest with an emulated NVDIMM and runs the command on a real DAX mount: MAP_SYNC under both
# persistence domains, a kill of the whole guest in the middle of a load, and a sector that cannot be
# read. On DAX it proves interfaces and the death of a kernel, not power loss: the emulation has no
# cache. A second disk, for a store in a plain file, has a write cache, which a power cut loses:
# `cargo xtask cut-disk`.
#
#   scripts/dax-guest.sh [path to bristlecone; target/release/bristlecone if none is given]
#
# Where qemu or a kernel cannot be had it says so and ends with 0. DAX_WORK names a folder to keep,
# DAX_STEPS the steps to run (dax process commit interval), POWER_CUTS the number of power cuts of
# each of the last three (10), SEED their moments. With CUT_LIES=lies the disk ignores the flushes of
# a load, and the script must fail.
set -euo pipefail
program=${1:-target/release/bristlecone}
xtask=target/release/xtask
work=${DAX_WORK:-$(mktemp -d)}
[ -n "${DAX_WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

skip() { echo "dax-guest: skipped: $1"; exit 0; }
fail() { echo "dax-guest: FAILED: $1" >&2; exit 1; }
for built in "$program" "$xtask"; do
    [ -x "$built" ] || skip "no $built; cargo build --release -p bristlecone-cli -p xtask builds it"
done
for tool in qemu-system-x86_64 busybox cpio depmod mkfs.ext4 dpkg-deb; do
    command -v "$tool" >/dev/null || PATH=$PATH:/sbin:/usr/sbin command -v "$tool" >/dev/null ||
        skip "no $tool (packages qemu-system-x86 busybox-static cpio kmod e2fsprogs)"
done
PATH=$PATH:/sbin:/usr/sbin

# A kernel of the distribution: nothing of it is installed, it is only unpacked.
if ! ls "$work"/linux-image-*.deb >/dev/null 2>&1; then
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        awk '/Depends: linux-image/ {print $2; exit}')
    [ -n "$package" ] || skip "no kernel package is known to apt"
    (cd "$work" && apt-get download "$package" >/dev/null 2>&1) || skip "cannot download $package"
fi
[ -d "$work/kernel" ] || dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
kernel=$(ls "$work"/kernel/boot/vmlinuz-*)
version=${kernel##*/vmlinuz-}
modules=$work/kernel/lib/modules/$version
[ -d "$modules" ] || modules=$work/kernel/usr/lib/modules/$version
[ -f "$modules/modules.dep" ] || depmod -b "${modules%/lib/modules/*}" "$version"

# The guest's root: busybox, the modules that an NVDIMM needs, the command and its libraries.
root=$work/root
rm -rf "$root"; mkdir -p "$root"/{bin,dev,proc,sys,mnt,tmp,modules}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$program" "$root/bin/bristlecone"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"
done
order=()
add() { # a module after those that it needs, by name
    local line file need
    line=$(grep -E "/$1\.ko[^:]*:" "$modules/modules.dep") || return 0 # Built in.
    file=${line%%:*}
    for need in ${line#*:}; do need=${need##*/}; add "${need%%.ko*}"; done
    [[ " ${order[*]:-} " == *" $1 "* ]] || { order+=("$1"); cp "$modules/$file" "$root/modules/$1.ko"; }
}
for module in libnvdimm nfit nd_btt nd_pmem crc16 mbcache jbd2 crc32c_generic libcrc32c ext4 \
    virtio_pci virtio_blk; do add "$module"; done

cat > "$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module.ko || echo "no $module"; done
mode=$(sed -n 's/.*mode=\([a-z]*\).*/\1/p' /proc/cmdline)
say() { echo "GUEST $*"; }
end() { sync; echo o > /proc/sysrq-trigger; sleep 60; }
key() { # the pairs of the numbers $1 to $2
    awk -v n="$1" -v end="$2" 'BEGIN { for (; n <= end; n++) printf "key %06d\tvalue of %06d\n", n, n }'
}
word() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" /proc/cmdline; }
if [ "$mode" = cut ]; then
    durability=$(sed -n 's/.*durability=\([a-z]*\).*/\1/p' /proc/cmdline)
    store() { what=$1; shift; timeout 60 bristlecone "$what" c.pool "$@" --durability "$durability"; }
    # The kernel writes back early and often, so that a cut leaves pages of many ages.
    echo 5 > /proc/sys/vm/dirty_writeback_centisecs; echo 20 > /proc/sys/vm/dirty_expire_centisecs
    mount -t ext4 /dev/vda /mnt || { say "no disk"; sleep 1000; }
    cd /mnt
    right=0
    if [ -f c.pool ]; then
        store dump > /tmp/dump 2> /tmp/why; code=$?
        # Without leading zeros: to this awk they are the sign of an octal number.
        sed 's/^key \(.*\)\tvalue of \1$/\1/; s/^0*//' /tmp/dump > /tmp/keys
        # The load has one thread and goes upwards: its pairs are the numbers from 1 on, all of them.
        right=$(awk '$0 + 0 != NR { exit } { n = NR } END { print n + 0 }' /tmp/keys)
        wrong=$(($(wc -l < /tmp/keys) - right))
        store check > /dev/null 2>> /tmp/why; checked=$?
        say "FOUND dump=$code check=$checked right=$right wrong=$wrong why=$(head -c 150 /tmp/why | head -1)"
    else
        say "FOUND nothing"
    fi
    # A store that a cut may have torn is refused, so the next begins anew. One with a journal goes on.
    [ "$durability" != process ] || { rm -rf /mnt/*; sync; right=0; }
    case $(word load) in
    0)
        [ "$durability" != interval ] ||
            while :; do read -r up _ < /proc/uptime; echo "TICK $up"; usleep 20000; done &
        say loading; key $((right + 1)) 900000 | bristlecone load c.pool - --ack --durability "$durability"
        say "load ends with $?" ;;
    *) key $((right + 1)) $((right + $(word load))) | store load -; say "closed with $?" ;;
    esac
    sleep 1000
fi
cd /sys/bus/nd/devices
say "domain of the region: $(cat region0/persistence_domain)"
if [ "$mode" = prepare ]; then
    echo namespace0.0 > /sys/bus/nd/drivers/nd_pmem/unbind
    cat /proc/sys/kernel/random/uuid > pfn0.0/uuid; echo ram > pfn0.0/mode
    echo 2097152 > pfn0.0/align; echo namespace0.0 > pfn0.0/namespace
    echo pfn0.0 > /sys/bus/nd/drivers/nd_pmem/bind && say prepared
    end
fi
mount -t ext4 -o dax /dev/pmem0 /mnt || { say "no DAX mount"; end; }
cd /mnt
key() { seq -w "$@" | sed 's,.*,key &\tvalue of it,'; }
case $mode in
run)
    rm -rf /mnt/*
    bristlecone create a.pool --size 16M; bristlecone put a.pool one 1
    say "$(bristlecone stat a.pool --json)"
    bristlecone torture --cycles 20 --threads 2 --keys 500 --seed 1 --folder /mnt --json
    say "torture ends with $?" ;;
load)
    rm -rf /mnt/*
    say loading; key 1 100000 | bristlecone load b.pool - --ack ;;
verify)
    say "$(bristlecone check b.pool --json)"; say "check ends with $?"
    bristlecone dump b.pool | cut -f1 | sed 's/^/HAS /' ;;
poison)
    bristlecone check b.pool --json; say "before, check ends with $?"
    sector=$(sed -n 's/.*sector=\([0-9]*\).*/\1/p' /proc/cmdline)
    echo "$sector 8" > /sys/block/pmem0/badblocks
    bristlecone check b.pool; say "check ends with $?" ;;
esac
end
INIT
chmod +x "$root/init"
printf '%s\n' "${order[@]:-}" > "$root/modules/order"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) > "$work/initrd"

steps=" ${DAX_STEPS:-dax process commit interval} "
# Prints the greatest key that a guest's console promises to survive the cut, or nothing. Under an
# interval a put that ends syncs what was put 400 ms before. The guest tells its clock between the
# acknowledgements: a pair is older than the second clock after it, and the last put ended later than
# the clock before the acknowledgement in front of its own.
promised() { # durability, log
    tr -d '\r' < "$2" | awk -v interval="$([ "$1" != interval ] || echo 1)" '
        BEGIN { ticks = now = before = 0 }
        /^TICK [0-9.]+$/ { time[++ticks] = $2 }
        /^key [0-9]+$/ && length($2) == 6 { key[ticks] = last = $2 + 0; before = now; now = ticks }
        END {
            if (interval) for (last = tick = 0; tick + 2 <= before; tick++)
                if (tick in key && time[tick + 2] + 0.43 <= time[before]) last = key[tick]
            if (last) print last
        }'
}
# Power cuts of a plain file: at a boot, at a load, or right after it has closed the store. The next
# boot must find the numbers from 1 on without a gap, up to the last that was promised or later, or
# refuse with exit code 3 a store without a journal that was not closed.
cut() { # durability
    local disk=$work/cut.img cuts=${POWER_CUTS:-10} number least=0 closed=1 load moment count log found
    local refused=0 right=0 wrong=0 absent=0 lost=0 acknowledged=0 late=0 renewed=-1
    declare -A requests=([process]=120 [commit]=1500 [interval]=120)
    RANDOM=$((SEED % 32768))
    for number in $(seq 0 "$cuts"); do
        if [ $((number % 20)) = 0 ]; then
            # A new disk, and a new store. ext4 writes its superblock of two sectors in place: with a
            # checksum, a torn one is refused.
            rm -f "$disk"; truncate -s 128M "$disk"; mkfs.ext4 -q -F -O ^metadata_csum "$disk"
            least=new acknowledged=0 closed=1
        fi
        log=$work/$1-$number.log load=0
        case $((number % 6)) in
        2) load=$((RANDOM % 3000 + 1)) moment="GUEST closed with 0" count=$((RANDOM % 3)) ;;
        5) moment="" count=$((RANDOM % 80)) ;;
        *) moment="GUEST loading" count=$((RANDOM % requests[$1])) ;;
        esac
        "$xtask" cut-disk ${CUT_LIES:-} "$disk" "$work/cut.socket" "$((SEED + number))" "$count" \
            "$moment" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 512M -nic none -nographic \
            -nodefaults -serial stdio -no-reboot -kernel "$kernel" -initrd "$work/initrd" -append \
            "console=ttyS0 quiet panic=-1 no_timer_check mode=cut load=$load durability=$1" -drive \
            "file=nbd+unix:///?socket=$work/cut.socket,if=virtio,format=raw,cache=writeback" \
            </dev/null > "$log" 2>&1 || fail "guest $number: $(tail -3 "$log")"
        found=$(tr -d '\r' < "$log" | grep -o 'FOUND .*' || true)
        value() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" <<<"$found"; }
        if [ -z "$found" ]; then # Without a journal, a store that is open is not closed.
            ! grep -q 'no disk' "$log" || fail "guest $number cannot mount its disk"
            late=$((late + 1)) closed=0 least=${least/new/0}
            continue
        elif [ "$least" = new ]; then
            renewed=$((renewed + 1))
        elif [ "$least" = 0 ] && grep -Eq 'FOUND nothing|no store yet' <<<"$found"; then
            absent=$((absent + 1))
        elif [ "$(value dump)$(value right)$closed$1" = 300process ]; then
            refused=$((refused + 1))
        elif [ "$(value dump)$(value check)$(value wrong)" = 000 ] && [ "$(value right)" -ge "$least" ]; then
            right=$((right + 1))
            lost=$((lost + ($(value right) < acknowledged)))
        else
            wrong=$((wrong + 1))
            echo "dax-guest: cut $number of seed $SEED, $1, $least promised: $found" >&2
        fi
        # What was found survives; without a journal the guest then begins anew.
        least=$(value right) closed=0
        [ -n "$least" ] && [ "$1" != process ] || least=0
        acknowledged=$(promised commit "$log")
        found=$(promised "$1" "$log")
        ! grep -q 'GUEST closed with 0' "$log" || closed=1 found=$((least + load))
        least=${found:-$least} acknowledged=${acknowledged:-$least}
    done
    local summary="$refused refused, $right right ($lost without a pair that had returned)"
    summary="$cuts power cuts, $1: $summary, $absent without a file, $late in an open,"
    summary="$summary $renewed before a new disk, $wrong wrong"
    [ "$wrong" = 0 ] || fail "$summary; seed $SEED"
    echo "dax-guest: $summary; seed $SEED"
}
: "${SEED:=$(date +%s)}"
for step in process commit interval; do
    [[ $steps != *" $step "* ]] || cut "$step"
done
[[ $steps == *" dax "* ]] || { echo "dax-guest: passed"; exit 0; }

image=$work/nv.img
boot() { # mode, persistence, more of the command line: the guest's console on standard output
    timeout "${DAX_SECONDS:-240}" qemu-system-x86_64 -machine "pc,nvdimm=on,nvdimm-persistence=$2" \
        -accel tcg -cpu max -smp 2 -m 512M,slots=4,maxmem=4G -nic none -nographic -nodefaults \
        -serial stdio -no-reboot -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check mode=$1 ${3:-}" \
        -object memory-backend-file,id=m1,share=on,mem-path="$image",size=256M \
        -device nvdimm,id=n1,memdev=m1 </dev/null 2>&1 | tr -d '\r'
}

rm -f "$image"; truncate -s 256M "$image"
boot prepare mem-ctrl > "$work/prepare.log" || true
grep -q 'GUEST prepared' "$work/prepare.log" || fail "the namespace is not made: $(tail -3 "$work/prepare.log")"
mkfs.ext4 -q -F -b 4096 -E offset=2097152 "$image" 260096k

for pair in mem-ctrl:adr cpu:eadr; do
    boot run "${pair%:*}" > "$work/run-${pair%:*}.log" || true
    grep -q "\"domain\":\"${pair#*:}\"" "$work/run-${pair%:*}.log" ||
        fail "domain ${pair#*:} is not seen: $(grep GUEST "$work/run-${pair%:*}.log")"
    grep -q '"lost":0' "$work/run-${pair%:*}.log" || fail "torture under ${pair%:*}"
    echo "dax-guest: MAP_SYNC, domain ${pair#*:}: $(grep -o '"cycles".*' "$work/run-${pair%:*}.log")"
done

# The whole guest is killed in the middle of a load; whatever had come over the console is there.
boot load mem-ctrl > "$work/load.log" 2>/dev/null &
for _ in $(seq 600); do
    [ "$(grep -c '^key ' "$work/load.log" 2>/dev/null || true)" -gt 1000 ] && break
    sleep 0.2
done
children=$(pgrep -f "mem-path=$image," || true)
[ -n "$children" ] || fail "the loading guest is gone: $(tail -3 "$work/load.log")"
kill -9 $children; { wait; } 2>/dev/null || true
grep -E '^key [0-9]{6}$' "$work/load.log" | sort > "$work/acknowledged"
boot verify mem-ctrl > "$work/verify.log" || true
grep -q 'check ends with 0' "$work/verify.log" || fail "the check: $(grep GUEST "$work/verify.log")"
sed -n 's/^HAS //p' "$work/verify.log" | sort > "$work/found"
lost=$(comm -23 "$work/acknowledged" "$work/found" | wc -l)
[ "$lost" = 0 ] || fail "$lost acknowledged keys are lost"
echo "dax-guest: guest killed: $(wc -l < "$work/acknowledged") acknowledged, $lost lost"

# Eight sectors around the last pair of the store cannot be read: the command ends with a message
# that names file and offset, and with exit code 4. Those of the first pairs are read by a call of
# the system, whose error names no offset.
at=$(LC_ALL=C grep -abo 'value of it' "$image" | sed -n '$s/:.*//p')
[ -n "$at" ] || fail "no pair of the store is in the image"
boot poison mem-ctrl "sector=$(((at - 2097152) / 4096 * 8))" > "$work/poison.log" || true
grep -q 'before, check ends with 0' "$work/poison.log" || fail "$(grep GUEST "$work/poison.log")"
grep -q 'GUEST check ends with 4' "$work/poison.log" || fail "$(tail -4 "$work/poison.log")"
message=$(grep 'cannot reach offset 0x' "$work/poison.log") || fail "no message for the bad sector"
echo "dax-guest: bad sector: $message"

echo "dax-guest: passed"
