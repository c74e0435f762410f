# shellcheck shell=bash disable=SC2154
# The servers as containers of docker-compose.yml. Sourced by servers.sh. A member is a service of that file.

compose() {
  local command=(docker-compose)
  if docker compose version >/dev/null 2>&1; then
    command=(docker compose)
  fi
  exec "${command[@]}" --project-name "$TENURE_COMPOSE_PROJECT" --project-directory "$root" --file "$root/docker-compose.yml" \
    --env-file "$dir/settings" "$@" </dev/null
}

container() { # SERVICE
  docker ps --all --quiet --filter "label=com.docker.compose.project=$TENURE_COMPOSE_PROJECT" \
    --filter "label=com.docker.compose.service=$1"
}

images_of() { # GROUP
  case $1 in
  etcd*) echo etcd ;;
  redis*) echo redis ;;
  kubernetes) echo etcd kubernetes ;;
  *) echo "$1" ;;
  esac
}

backend_prepare() { # GROUP..
  local name server image
  docker version >/dev/null || fail "docker does not answer; \`up local\` does without it"
  setting TENURE_COMPOSE_PROJECT "tenure-$(printf '%s' "$dir" | cksum | cut -d' ' -f1)"
  for name in "$@"; do
    for server in $(images_of "$name"); do
      image=$("$here/images.sh" "$server") || fail "no image for $server"
      setting "TENURE_${server^^}_IMAGE" "$image"
    done
    [[ $name != kubernetes ]] || kubernetes_prepare docker
  done
}

backend_ports() { :; } # inside its container each server has the usual port

backend_start() { # GROUP..
  local name services=()
  for name in "$@"; do
    # shellcheck disable=SC2207 # names have no spaces
    services+=($(members "$name"))
    [[ $name != redis-sentinel ]] || services+=(redis-sentinel-net)
  done
  compose up --detach --no-build "${services[@]}" >"$dir/compose.log" 2>&1 &
  echo $! >"$dir/compose.pid"
  wait $! || {
    tail -n 20 "$dir/compose.log" >&2
    fail 'docker-compose could not start the servers'
  }
}

backend_down() {
  [[ -n ${TENURE_COMPOSE_PROJECT:-} ]] || return 0
  local mine pid=0
  # An `up` that was killed may have left compose at work, which would go on to make containers; what it has asked docker for already
  # is made all the same, so it gets two seconds to appear.
  [[ ! -e $dir/compose.pid ]] || pid=$(<"$dir/compose.pid")
  if [[ -r /proc/$pid/cmdline ]] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "--project-name $TENURE_COMPOSE_PROJECT "; then
    kill -s KILL "$pid" || true
    sleep 2
  fi
  mine=label=com.docker.compose.project=$TENURE_COMPOSE_PROJECT
  # By label rather than by compose: it needs neither the file nor its variables, so it also ends what an older file started.
  docker ps --all --quiet --filter "$mine" | xargs -r docker rm --force --volumes >/dev/null
  docker volume ls --quiet --filter "$mine" | xargs -r docker volume rm --force >/dev/null
  docker network ls --quiet --filter "$mine" | xargs -r docker network rm >/dev/null
}

# Runs the service's own health check now, rather than when docker next does.
member_ready() { # SERVICE
  local id check
  id=$(container "$1")
  [[ -n $id ]] || return 1
  if [[ $1 == kubernetes ]]; then
    kubernetes_ready
    return
  fi
  mapfile -t check < <(docker inspect --format '{{range .Config.Healthcheck.Test}}{{println .}}{{end}}' "$id" | sed '$d')
  case ${check[0]} in
  CMD) timeout 10 docker exec "$id" "${check[@]:1}" ;;
  CMD-SHELL) timeout 10 docker exec "$id" sh -c "${check[1]}" ;;
  esac >/dev/null 2>&1
}

member_runs() { [[ $(docker inspect --format '{{.State.Running}}' "$(container "$1")" 2>/dev/null) == true ]]; }
member_logs() { docker logs "$(container "$1")"; }
member_pause() { docker pause "$(container "$1")" >/dev/null; }
member_resume() { docker unpause "$(container "$1")" >/dev/null; }
member_stop() { docker stop --time 10 "$(container "$1")" >/dev/null; }
member_kill() { docker kill --signal KILL "$(container "$1")" >/dev/null; }
member_start() { docker start "$(container "$1")" >/dev/null; }

in_cluster() { docker exec "$(container redis-cluster)" sh /usr/local/bin/redis-cluster.sh "$@"; }
start_cluster_node() { docker exec --detach "$(container redis-cluster)" sh /usr/local/bin/redis-cluster.sh node /data "$1"; }

etcdctl_tls() {
  docker exec "$(container etcd-tls)" etcdctl --endpoints=https://127.0.0.1:2379 \
    --cacert=/tls/ca.crt --cert=/tls/root.crt --key=/tls/root.key "$@"
}
