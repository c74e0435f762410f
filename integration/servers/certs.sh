#!/usr/bin/env bash
# Makes the certificates of a test run in DIR: certs.sh DIR
#
#   ca.crt                  signs all below
#   server.crt, server.key  every server's, for localhost, 127.0.0.1 and ::1
#   client.crt, client.key  a client's, common name `tenure` (etcd takes it as the user)
#   root.crt, root.key      a client's, common name `root`
#   other-ca.crt            signed nothing here: whoever trusts only this one must refuse every server
#   service-account.key, .pub, tokens.csv    what the Kubernetes API server wants; the tokens are an administrator's and that of the
#                           user `tenure`, who may do nothing until a test binds a role
#
# They guard nothing but a test run on loopback, so the keys are readable by the servers' users. Complete sets are left as they are.
set -euo pipefail

dir=${1:?usage: certs.sh DIR}
mkdir -p "$dir"
chmod 755 "$dir"
cd "$dir"
[[ ! -e complete ]] || exit 0

# Valid at any wall clock that a test gives a client: `openssl ca` is the one way to set the first day that every OpenSSL has.
sign() { # NAME COMMON_NAME `openssl ca` ARGUMENTS.. -- EXTENSIONS..
  local name=$1 common_name=$2 arguments=()
  shift 2
  while [[ $1 != -- ]]; do
    arguments+=("$1") && shift
  done
  shift
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$common_name" -keyout "$name.key" -out "$name.csr" 2>openssl.log
  printf '%s\n' "$@" >"$name.ext"
  : >index.txt
  openssl ca -batch -notext -config ca.conf -startdate 20000101000000Z -enddate 20491231235959Z -extfile "$name.ext" \
    -in "$name.csr" -out "$name.crt" "${arguments[@]}" 2>openssl.log
  rm "$name.csr" "$name.ext"
}

authority() { # NAME
  sign "$1" "Tenure test $1" -selfsign -keyfile "$1.key" -- 'basicConstraints=critical,CA:TRUE' 'keyUsage=critical,keyCertSign,cRLSign' \
    'subjectKeyIdentifier=hash'
}

certificate() { # NAME COMMON_NAME EXTENSIONS..
  sign "$1" "$2" -cert ca.crt -keyfile ca.key -- 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' "${@:3}"
}

trap '[[ $? == 0 ]] || cat openssl.log >&2' EXIT
printf '%s\n' '[ca]' 'default_ca=test' '[test]' 'database=index.txt' 'new_certs_dir=.' 'rand_serial=yes' 'default_md=sha256' 'policy=name' '[name]' \
  'commonName=supplied' >ca.conf
authority ca
authority other-ca
# etcd's own gateway dials the server with the server's certificate, so that one is a client's too.
certificate server localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1' 'extendedKeyUsage=serverAuth,clientAuth'
certificate client tenure 'extendedKeyUsage=clientAuth'
certificate root root 'extendedKeyUsage=clientAuth'
openssl genrsa -out service-account.key 2048 2>openssl.log
openssl rsa -in service-account.key -pubout -out service-account.pub 2>openssl.log
printf '%s\n' 'tenure-admin,admin,admin,"system:masters"' 'tenure-user,tenure,tenure' >tokens.csv
rm -f -- openssl.log other-ca.key ca.conf index.txt* [0-9A-F]*.pem
chmod 644 -- *.crt *.key *.pub
touch complete
