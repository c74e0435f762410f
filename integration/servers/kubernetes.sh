# shellcheck shell=bash disable=SC2154
# What the Kubernetes API server needs besides other servers: its program, its users, its check. Sourced by servers.sh. It runs with an
# etcd of its own and nothing else of a cluster: no controller, no node.

kubernetes_prepare() { # docker|local
  local where=host build
  [[ $1 != docker ]] || where=docker
  build=$("$here/kube-apiserver.sh" "$where") || fail 'the Kubernetes API server could not be built'
  setting TENURE_KUBERNETES_BUILD "$build"
  command -v curl >/dev/null || fail 'curl is missing, by which the API server is asked whether it is ready'
}

start_kubernetes() {
  launch kubernetes "$TENURE_KUBERNETES_BUILD/kube-apiserver" --bind-address=127.0.0.1 "--secure-port=$TENURE_KUBERNETES_PORT" \
    "--etcd-servers=http://$(at TENURE_KUBERNETES_ETCD_PORT)" "--cert-dir=$home/kubernetes/certs" \
    "--tls-cert-file=$TENURE_TLS_DIR/server.crt" "--tls-private-key-file=$TENURE_TLS_DIR/server.key" \
    "--token-auth-file=$TENURE_TLS_DIR/tokens.csv" --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount \
    --service-account-issuer=https://127.0.0.1 "--service-account-key-file=$TENURE_TLS_DIR/service-account.pub" \
    "--service-account-signing-key-file=$TENURE_TLS_DIR/service-account.key" --service-cluster-ip-range=10.96.0.0/24 \
    --advertise-address=192.0.2.1 --endpoint-reconciler-type=none
}

# Ready means that the namespace `default` is there, which the server makes for itself some time after it says that it is ready.
kubernetes_ready() {
  local get=(curl --silent --fail --max-time 5 --cacert "$TENURE_TLS_DIR/ca.crt" --header 'Authorization: Bearer tenure-admin')
  "${get[@]}" "https://$(at TENURE_KUBERNETES_PORT)/readyz" >/dev/null &&
    "${get[@]}" "https://$(at TENURE_KUBERNETES_PORT)/api/v1/namespaces/default" >/dev/null
}

kubernetes_addresses() {
  kubeconfig tenure-admin >"$dir/kubeconfig"
  kubeconfig tenure-user >"$dir/kubeconfig-user"
  echo "TENURE_TEST_KUBERNETES=https://$(at TENURE_KUBERNETES_PORT)"
  echo "TENURE_TEST_KUBERNETES_CA=$TENURE_TLS_DIR/ca.crt"
  echo "TENURE_TEST_KUBERNETES_ADMIN_TOKEN=tenure-admin"
  echo "TENURE_TEST_KUBERNETES_USER_TOKEN=tenure-user"
  echo "TENURE_TEST_KUBERNETES_CONFIG=$dir/kubeconfig"
  echo "TENURE_TEST_KUBERNETES_USER_CONFIG=$dir/kubeconfig-user"
  echo "TENURE_TEST_LEADER_ELECTION_EXAMPLE=$TENURE_KUBERNETES_BUILD/leader-election"
}

kubeconfig() { # TOKEN
  cat <<CONFIG
apiVersion: v1
kind: Config
clusters:
  - name: tenure
    cluster: {server: "https://$(at TENURE_KUBERNETES_PORT)", certificate-authority: "$TENURE_TLS_DIR/ca.crt"}
users:
  - name: tenure
    user: {token: $1}
contexts:
  - name: tenure
    context: {cluster: tenure, user: tenure, namespace: default}
current-context: tenure
CONFIG
}
