#!/bin/bash
# The first process of a machine of nfs_machines.py: the server, or a client that runs a command.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run
for kind in proc:/proc sysfs:/sys tmpfs:/run tmpfs:/mnt tmpfs:/var/lib/nfs; do
    mount -t ${kind%:*} none ${kind#*:}
done
eval "$(tr ' ' '\n' < /proc/cmdline | grep -E '^mnmt_(number|out|options)=')"
mkdir -p /mnt/lib /mnt/out /mnt/shared /var/lib/nfs/{sm,sm.bak,rpc_pipefs,v4recovery}
ln -s /usr/lib/uml/modules /mnt/lib/modules
mount -t hostfs none /mnt/out -o "$mnmt_out"
exec > "/mnt/out/machine$mnmt_number.log" 2>&1
hostname "machine$mnmt_number"
ip link set lo up
ip link set vec0 up
ip address add "10.77.0.$mnmt_number/24" dev vec0
rpcbind

serve() {
    modprobe -d /mnt nfsd
    mount -t nfsd none /proc/fs/nfsd
    touch /var/lib/nfs/{etab,rmtab,state,xtab}
    sysctl -q fs.nfs.nlm_grace_period=1
    echo 10 > /proc/fs/nfsd/nfsv4leasetime
    echo 10 > /proc/fs/nfsd/nfsv4gracetime
    rpc.statd
    exportfs -o rw,no_root_squash,fsid=0,insecure,no_subtree_check '*:/mnt/shared'
    rpc.nfsd 8
    rpc.mountd
    echo Y > /proc/fs/nfsd/v4_end_grace
    touch /mnt/out/served
    while [ ! -e /mnt/out/end ]; do sleep 0.2; done
}

work() {
    modprobe -d /mnt -a nfsv3 nfsv4
    rpc.statd
    while [ ! -e /mnt/out/served ]; do sleep 0.2; done
    path=/mnt/shared
    [[ $mnmt_options == *vers=4* ]] && path=/
    mount -t nfs -o "$mnmt_options" "10.77.0.1:$path" /mnt/shared || echo "no mount"
    bash /mnt/out/command.sh > "/mnt/out/output$mnmt_number" 2>&1
    echo $? > "/mnt/out/status$mnmt_number"
}

if [ "$mnmt_number" = 1 ]; then serve; else work; fi
sync
echo o > /proc/sysrq-trigger
sleep 5
