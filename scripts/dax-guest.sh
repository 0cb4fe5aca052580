#!/usr/bin/env bash
# Boots a guest with an emulated NVDIMM and runs the command on a real DAX mount: MAP_SYNC under both
# persistence domains, a kill of the whole guest in the middle of a load, and a sector that cannot be
# read. It proves interfaces and the death of a kernel, not power loss: the emulation has no cache.
#
#   scripts/dax-guest.sh [path to bristlecone; target/release/bristlecone if none is given]
#
# Where qemu or a kernel cannot be had it says so and ends with 0. DAX_WORK names a folder to keep.
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
for module in libnvdimm nfit nd_btt nd_pmem crc16 mbcache jbd2 crc32c_generic libcrc32c ext4; do add "$module"; done

cat > "$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module.ko || echo "no $module"; done
mode=$(sed -n 's/.*mode=\([a-z]*\).*/\1/p' /proc/cmdline)
say() { echo "GUEST $*"; }
end() { sync; echo o > /proc/sysrq-trigger; sleep 60; }
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

image=$work/nv.img
boot() { # mode, persistence, more of the command line: the guest's console on standard output
    timeout "${DAX_SECONDS:-240}" qemu-system-x86_64 -machine "pc,nvdimm=on,nvdimm-persistence=$2" \
        -accel tcg -cpu max -smp 2 -m 512M,slots=4,maxmem=4G -nic none -nographic -nodefaults \
        -serial stdio -no-reboot -kernel "$kernel" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet panic=-1 mode=$1 ${3:-}" \
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
