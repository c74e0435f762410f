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

authority() { # NAME
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 -subj "/CN=Tenure test $1" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
    -keyout "$1.key" -out "$1.crt" 2>openssl.log
}

certificate() { # NAME COMMON_NAME EXTENSIONS..
  local name=$1 common_name=$2
  shift 2
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$common_name" \
    -keyout "$name.key" -out "$name.csr" 2>openssl.log
  printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' "$@" >"$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile "$name.ext" \
    -out "$name.crt" 2>openssl.log
  rm "$name.csr" "$name.ext"
}

trap '[[ $? == 0 ]] || cat openssl.log >&2' EXIT
authority ca
authority other-ca
# etcd's own gateway dials the server with the server's certificate, so that one is a client's too.
certificate server localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1' 'extendedKeyUsage=serverAuth,clientAuth'
certificate client tenure 'extendedKeyUsage=clientAuth'
certificate root root 'extendedKeyUsage=clientAuth'
openssl genrsa -out service-account.key 2048 2>openssl.log
openssl rsa -in service-account.key -pubout -out service-account.pub 2>openssl.log
printf '%s\n' 'tenure-admin,admin,admin,"system:masters"' 'tenure-user,tenure,tenure' >tokens.csv
rm -f ca.srl openssl.log other-ca.key
chmod 644 -- *.crt *.key *.pub
touch complete
