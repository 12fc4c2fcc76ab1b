# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that run a real Slurm on loopback: munged with a key of its
# own, slurmctld, and a slurmd a node, all in one network namespace or on ports
# that were free. No systemd, no cgroups, no /etc/slurm.
# shellcheck shell=bash

# ports N: so many free ones.
ports() {
	/usr/bin/python3 -c '
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in held:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])' "$1"
}

# slurm_conf NODES LINES...: $T/slurm/slurm.conf with nodes h0..., and the lines.
slurm_conf() {
	local nodes=$1 me host port i
	me=$(id -un)
	host=$(uname -n)
	host=${host%%.*}
	read -ra port <<<"$(ports $((nodes + 1)))"
	{
		cat <<-END
		ClusterName=weft
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=${port[0]}
		SlurmUser=$me
		SlurmdUser=$me
		AuthType=auth/munge
		AuthInfo=socket=$T/slurm/munge.sock
		CredType=cred/munge
		StateSaveLocation=$T/slurm
		SlurmdSpoolDir=$T/slurm/%n
		SlurmctldPidFile=$T/slurm/slurmctld.pid
		SlurmdPidFile=$T/slurm/%n.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		SchedulerParameters=batch_sched_delay=0,sched_interval=1
		KillWait=1
		ReturnToService=0
		END
		for ((i = 0; i < nodes; i++)); do
			echo "NodeName=h$i NodeHostname=$host NodeAddr=127.0.0.1 Port=${port[i + 1]} CPUs=1"
		done
		echo "PartitionName=all Nodes=h[0-$((nodes - 1))] Default=YES MaxTime=INFINITE"
		shift
		(($# == 0)) || printf '%s\n' "$@"
	} >"$T/slurm/slurm.conf"
}

# slurm_daemon NAME COMMAND...: in the background, its output to NAME.log.
slurm_daemon() {
	local name=$1
	shift
	"$@" >"$T/slurm/$name.log" 2>&1 </dev/null &
	PID[$name]=$!
}

all_nodes() { # NODES STATE
	[[ $(sinfo -h -N -o %t | grep -cx "$2") == "$1" ]]
}

# slurm_start NODES: with $T/slurm/slurm.conf, until all nodes are idle. When they
# do not become so, says why.
slurm_start() {
	local i
	# Slurm asks for addresses by AI_ADDRCONFIG, for which loopback does not
	# count: a namespace that has nothing else is given one of RFC 5737's.
	if [[ $(ip -o link | wc -l) == 1 ]]; then
		ip address add 192.0.2.1/32 dev lo || return 1
	fi
	export SLURM_CONF=$T/slurm/slurm.conf
	(umask 077 && head -c 64 /dev/urandom >"$T/slurm/munge.key")
	slurm_daemon munged munged --foreground --force --socket="$T/slurm/munge.sock" \
		--key-file="$T/slurm/munge.key" --pid-file="$T/slurm/munged.pid" \
		--log-file="$T/slurm/munged.out" --seed-file="$T/slurm/munged.seed"
	wait_for 20 test -S "$T/slurm/munge.sock" || {
		echo "# munged did not start"
		sed 's/^/# /' "$T/slurm/munged.log"
		return 1
	}
	slurm_daemon slurmctld slurmctld -D
	for ((i = 0; i < $1; i++)); do
		slurm_daemon "slurmd$i" slurmd -D -N "h$i"
	done
	wait_for 60 all_nodes "$1" idle || {
		echo "# Slurm's nodes are not idle"
		sinfo -N -o '%N %T %E' 2>&1 | sed 's/^/# /'
		tail -n 15 "$T/slurm/slurmctld.log" "$T/slurm/slurmd0.log" | sed 's/^/# /'
		return 1
	}
}

# Ends what slurm_start has started. No job may run any more.
slurm_stop() {
	local name
	for name in "${!PID[@]}"; do
		[[ $name == slurm* || $name == munged ]] && kill -KILL "${PID[$name]}"
	done
	for name in "${!PID[@]}"; do
		[[ $name == slurm* || $name == munged ]] && stop "$name"
	done 2>/dev/null
}
