#!/usr/bin/env bash
# Boots a guest with an emulated NVDIMM and runs the command on a real DAX mount: MAP_SYNC under both
# persistence domains, a kill of the whole guest in the middle of a load, and a sector that cannot be
# read. On DAX it proves interfaces and the death of a kernel, not power loss: the emulation has no
# cache. On a second disk, without DAX, the death of the guest is a power cut for a store in a plain
# file: what its kernel had not written back is lost.
#
#   scripts/dax-guest.sh [path to bristlecone; target/release/bristlecone if none is given]
#
# Where qemu or a kernel cannot be had it says so and ends with 0. DAX_WORK names a folder to keep,
# POWER_CUTS the number of power cuts (10), DAX_STEPS the steps to run (dax cut), SEED their moments.
set -euo pipefail
program=${1:-target/release/bristlecone}
work=${DAX_WORK:-$(mktemp -d)}
[ -n "${DAX_WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

skip() { echo "dax-guest: skipped: $1"; exit 0; }
fail() { echo "dax-guest: FAILED: $1" >&2; exit 1; }
[ -x "$program" ] || skip "no $program; cargo build --release builds it"
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
key() { seq -w "$@" | sed 's,.*,key &\tvalue of &,'; }
word() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" /proc/cmdline; }
if [ "$mode" = cut ]; then
    # The kernel writes back early and often, so that a cut leaves pages of many ages.
    echo 5 > /proc/sys/vm/dirty_writeback_centisecs; echo 20 > /proc/sys/vm/dirty_expire_centisecs
    mount -t ext4 /dev/vda /mnt || { say "no disk"; end; }
    cd /mnt
    if [ -f c.pool ]; then
        timeout 60 bristlecone dump c.pool --durability process > /tmp/dump 2> /tmp/why; code=$?
        # Without leading zeros: to this awk they are the sign of an octal number.
        sed 's/^key \(.*\)\tvalue of \1$/\1/; s/^0*//' /tmp/dump > /tmp/keys
        # The load has one thread and goes upwards: its pairs are the numbers from 1 on, all of them.
        right=$(awk '$0 + 0 != NR { exit } { n = NR } END { print n + 0 }' /tmp/keys)
        wrong=$(($(wc -l < /tmp/keys) - right))
        timeout 60 bristlecone check c.pool --durability process > /dev/null 2>&1; checked=$?
        say "FOUND dump=$code check=$checked right=$right wrong=$wrong why=$(head -c 150 /tmp/why | head -1)"
    else
        say "FOUND nothing"
    fi
    rm -rf /mnt/*; sync
    case $(word load) in
    0) say loading; key 1 100000 | bristlecone load c.pool - --ack --durability process ;;
    *) key 1 "$(word load)" | bristlecone load c.pool - --durability process; say "closed with $?" ;;
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

steps=" ${DAX_STEPS:-dax cut} "
# Power cuts of a plain file: the guest dies while it loads, or right after it has closed the store.
# The next boot must refuse the store with exit code 3, or find every acknowledged pair and no other;
# a closed store it must open.
cut() {
    local disk=$work/cut.img cuts=${POWER_CUTS:-10} number expected= acknowledged=0 load=0 log
    local refused=0 right=0 wrong=0 absent=0 pid found
    RANDOM=${SEED:=$(date +%s)}
    RANDOM=$((SEED % 32768))
    rm -f "$disk"; truncate -s 128M "$disk"; mkfs.ext4 -q -F "$disk"
    for number in $(seq 0 "$cuts"); do
        log=$work/cut-$number.log
        rm -f "$work/cut.pid"
        : > "$log" # The loop below reads it, perhaps before the guest has begun.
        # Every third store is closed before the cut.
        [ $((number % 3)) = 2 ] && load=$((RANDOM % 3000 + 1)) || load=0
        timeout "${DAX_SECONDS:-240}" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 512M -nic none \
            -nographic -nodefaults -serial stdio -no-reboot -pidfile "$work/cut.pid" \
            -kernel "$kernel" -initrd "$work/initrd" \
            -append "console=ttyS0 quiet panic=-1 no_timer_check mode=cut load=$load" \
            -drive "file=$disk,if=virtio,format=raw,cache=writeback" </dev/null > "$log" 2>&1 &
        local wanted=$((RANDOM % 2000)) pause=0.$((RANDOM % 10))
        for _ in $(seq 1200); do
            if [ "$number" = "$cuts" ]; then
                ! grep -q 'GUEST FOUND' "$log" || break
            elif [ "$load" = 0 ]; then
                [ "$(grep -c '^key ' "$log" || true)" -le "$wanted" ] || break
            else
                ! grep -q 'GUEST closed with 0' "$log" || break
            fi
            pid=$(cat "$work/cut.pid" 2>/dev/null || true)
            [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || fail "guest $number ended: $(tail -3 "$log")"
            sleep 0.1
        done
        [ "$load" != 0 ] || sleep "$pause"
        pid=$(cat "$work/cut.pid" 2>/dev/null || true)
        [ -n "$pid" ] || fail "guest $number is gone: $(tail -3 "$log")"
        { kill -9 "$pid"; wait; } 2>/dev/null || true
        found=$(tr -d '\r' < "$log" | grep -o 'FOUND .*' || true)
        [ -n "$found" ] || fail "guest $number tells nothing: $(tail -3 "$log")"
        if [ -n "$expected" ]; then
            value() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" <<<"$found"; }
            # Without a pair acknowledged, the file's name need not be on the disk yet.
            if [ "$found" = "FOUND nothing" ] && [ "$acknowledged" = 0 ]; then
                absent=$((absent + 1))
            elif [ "$(value dump)" = 3 ] && [ "$(value right)" = 0 ] && [ "$expected" = killed ]; then
                refused=$((refused + 1))
            elif [ "$(value dump)$(value check)$(value wrong)" = 000 ] &&
                [ "$(value right)" -ge "$acknowledged" ]; then
                right=$((right + 1))
            else
                wrong=$((wrong + 1))
                echo "dax-guest: cut $number of seed $SEED, store $expected with $acknowledged: $found" >&2
            fi
        fi
        if [ "$load" = 0 ]; then
            expected=killed
            acknowledged=$(tr -d '\r' < "$log" | grep -cE '^key [0-9]{6}$' || true)
        else
            expected=closed
            acknowledged=$load
        fi
    done
    local summary="$refused refused, $right right, $absent without a file, $wrong wrong"
    [ "$wrong" = 0 ] || fail "$cuts power cuts of a plain file: $summary; seed $SEED"
    echo "dax-guest: $cuts power cuts of a plain file: $summary"
}
[[ $steps != *" cut "* ]] || cut
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
boot load mem-ctrl > "$work/load.log" &
for _ in $(seq 600); do
    [ "$(grep -c '^key ' "$work/load.log" 2>/dev/null || true)" -gt 500 ] && break
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

# Eight sectors around a key of the store cannot be read: the command ends with a message that names
# file and offset, and with exit code 4.
at=$(LC_ALL=C grep -abo 'value of it' "$image" | sed -n '300s/:.*//p')
[ -n "$at" ] || fail "no pair of the store is in the image"
boot poison mem-ctrl "sector=$(((at - 2097152) / 4096 * 8))" > "$work/poison.log" || true
grep -q 'before, check ends with 0' "$work/poison.log" || fail "$(grep GUEST "$work/poison.log")"
grep -q 'GUEST check ends with 4' "$work/poison.log" || fail "$(tail -4 "$work/poison.log")"
message=$(grep 'cannot reach offset 0x' "$work/poison.log") || fail "no message for the bad sector"
echo "dax-guest: bad sector: $message"

echo "dax-guest: passed"
