# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver, kube-scheduler and kube-controller-manager on the loopback."""

import json
import os
import shutil
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'interop'))

from interop import Program, run, wait_for  # noqa: E402
from api import Api, Refused  # noqa: E402

PROGRAMS = ('etcd', 'kube-apiserver', 'kube-scheduler', 'kube-controller-manager')
NODE = 'node-1'
NEW_NODE = 'node-2'
ACCOUNTS = {  # base name of its files: (name, group)
    'admin': ('admin', 'system:masters'),
    'agent': ('node-agent', 'agents'),
    'driver': ('gpu-driver', 'drivers'),
    'kube-controller-manager': ('system:kube-controller-manager', ''),
    'kube-scheduler': ('system:kube-scheduler', ''),
    'new-node': (f'system:node:{NEW_NODE}', 'system:nodes'),
    'node': (f'system:node:{NODE}', 'system:nodes'),
}
# On by default in 1.37, and said all the same: an older release has them off.
GATES = 'DRAExtendedResource=true,DRADeviceTaints=true'


def free_ports(count):
  """Ports that no socket listens on. All are taken before one is given back."""
  sockets = [socket.socket() for _ in range(count)]
  for each in sockets:
    each.bind(('127.0.0.1', 0))
  ports = [each.getsockname()[1] for each in sockets]
  for each in sockets:
    each.close()
  return ports


class Authority:
  """A certificate authority in a folder, and what it has signed."""

  def __init__(self, folder):
    self.folder = folder
    self._openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                  '-nodes', '-keyout', 'ca.key', '-out', 'ca.crt.new', '-days', '2',
                  '-subj', '/CN=ca',
                  '-addext', 'keyUsage=critical,keyCertSign,digitalSignature')
    os.rename(f'{folder}/ca.crt.new', f'{folder}/ca.crt')

  def _openssl(self, *words):
    done = run(['openssl', *words], cwd=self.folder)
    if done.returncode != 0:
      raise RuntimeError(f'openssl {" ".join(words)}: {done.stderr}')

  def sign(self, base, name, group='', extension='extendedKeyUsage=clientAuth',
           days=1):
    """Makes `base`.crt and `base`.key, each in one step, the key first."""
    subject = (f'/O={group}' if group else '') + f'/CN={name}'
    with open(f'{self.folder}/{base}.ext', 'w', encoding='utf-8') as text:
      text.write(extension + '\n')
    self._openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                  '-keyout', base + '.key.new', '-out', base + '.csr', '-subj', subject)
    self._openssl('x509', '-req', '-in', base + '.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key',
                  '-CAcreateserial', '-days', str(days), '-extfile', base + '.ext',
                  '-out', base + '.crt.new')
    for end in ('.key', '.crt'):
      os.rename(f'{self.folder}/{base}{end}.new', f'{self.folder}/{base}{end}')

  def sign_account(self, base, days=1):
    self.sign(base, *ACCOUNTS[base], days=days)

  def sign_server(self):
    self.sign('server', 'kube-apiserver',
              extension='extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1')


def kubeconfig(folder, account, port):
  """Writes the kubeconfig of an account, with paths; returns where."""
  path = f'{folder}/{account}.kubeconfig'
  with open(path, 'w', encoding='utf-8') as text:
    text.write(f'''apiVersion: v1
kind: Config
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: {account}}}}}]
clusters:
- name: test
  cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: {folder}/ca.crt}}
users:
- name: {account}
  user: {{client-certificate: {folder}/{account}.crt, client-key: {folder}/{account}.key}}
''')
  return path


class ControlPlane:
  """The four programs. Each can be killed and started anew."""

  def __init__(self, programs, folder):
    self._programs = programs
    self.folder = folder
    self.pki = folder + '/pki'
    os.makedirs(self.pki, mode=0o700)
    self.rotate()
    self._policy = folder + '/audit-policy.yaml'
    with open(self._policy, 'w', encoding='utf-8') as text:
      text.write('apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n')
    self._etcd_port, self._peer_port, self.port = free_ports(3)
    self.kubeconfigs = {account: kubeconfig(self.pki, account, self.port) for account in ACCOUNTS}
    self.admin = Api(self.port, self.pki, 'admin')
    self.running = {}

  def rotate(self):
    """Another authority, and all certificates anew, in their places."""
    authority = self.authority = Authority(self.pki)
    for account in ACCOUNTS:
      authority.sign_account(account)
    authority.sign_server()
    if not os.path.exists(self.pki + '/tokens.key'):
      authority.sign('tokens', 'service-accounts')

  def _spawn(self, program, *flags):
    self.running[program] = Program(f'{self.folder}/{program}.log',
                                    f'{self._programs}/{program}', *flags)

  def start_etcd(self):
    url, peer = (f'http://127.0.0.1:{port}' for port in (self._etcd_port, self._peer_port))
    self._spawn('etcd', '--data-dir', self.folder + '/etcd', '--unsafe-no-fsync',
                '--listen-client-urls', url, '--advertise-client-urls', url,
                '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                '--initial-cluster', 'default=' + peer, '--log-level', 'warn')

  def start_api_server(self):
    pki = self.pki
    self._spawn('kube-apiserver', f'--etcd-servers=http://127.0.0.1:{self._etcd_port}',
                '--bind-address=127.0.0.1', '--advertise-address=127.0.0.1',
                f'--secure-port={self.port}', '--endpoint-reconciler-type=none',
                f'--tls-cert-file={pki}/server.crt', f'--tls-private-key-file={pki}/server.key',
                f'--client-ca-file={pki}/ca.crt', '--authorization-mode=Node,RBAC',
                '--enable-admission-plugins=NodeRestriction',
                '--disable-admission-plugins=ServiceAccount',
                '--service-cluster-ip-range=10.0.0.0/24',
                '--service-account-issuer=https://127.0.0.1',
                f'--service-account-key-file={pki}/tokens.crt',
                f'--service-account-signing-key-file={pki}/tokens.key',
                f'--audit-policy-file={self._policy}',
                f'--audit-log-path={self.folder}/audit.log', f'--feature-gates={GATES}')

  def requests(self):
    """What the node has asked for, as the server's audit has it."""
    user = ACCOUNTS['node'][0]
    with open(f'{self.folder}/audit.log', encoding='utf-8') as text:
      events = [json.loads(line) for line in text if line.endswith('\n')]
    return [each for each in events if each['user'].get('username') == user]

  def lists(self):
    """How many complete lists of its pods the node has had."""
    return sum(each['verb'] == 'list' and each['stage'] == 'ResponseComplete' and
               each['objectRef'].get('resource') == 'pods' and
               each['responseStatus']['code'] == 200 for each in self.requests())

  def start_scheduler(self):
    self._spawn('kube-scheduler', '--kubeconfig', self.kubeconfigs['kube-scheduler'],
                '--leader-elect=false', '--secure-port=0', f'--feature-gates={GATES}')

  def start_controllers(self):
    # The others would taint a node whose agent renews no lease. Each controller
    # has the permissions of its own account.
    self._spawn('kube-controller-manager', '--kubeconfig',
                self.kubeconfigs['kube-controller-manager'], '--leader-elect=false',
                '--secure-port=0', '--use-service-account-credentials',
                f'--feature-gates={GATES}',
                '--controllers=resourceclaim-controller,garbage-collector-controller')

  def ready(self):
    try:
      return self.admin.call('GET', '/readyz') == 'ok'
    except (OSError, Refused):
      return False

  def start(self):
    """Starts all of them; why that failed, or ''."""
    self.start_etcd()
    self.start_api_server()
    server = self.running['kube-apiserver']
    if not wait_for(lambda: server.ended() or self.ready()) or server.ended():
      return 'kube-apiserver is not ready: ' + self.tail('kube-apiserver')
    self.start_scheduler()
    self.start_controllers()
    return ''

  def kill(self, program):
    self.running.pop(program).stop(signal.SIGKILL)

  def save(self):
    """Keeps the state of now, for `restore`; the server restarts for it."""
    self.kill('kube-apiserver')
    self.kill('etcd')
    shutil.copytree(self.folder + '/etcd', self.folder + '/etcd.saved')
    self.start_etcd()
    self.start_api_server()

  def restore(self):
    """The state of then, and all that had seen a later one started anew."""
    for program in reversed(PROGRAMS):
      self.kill(program)
    shutil.rmtree(self.folder + '/etcd')
    os.rename(self.folder + '/etcd.saved', self.folder + '/etcd')
    self.start()

  def tail(self, program, count=15):
    with open(f'{self.folder}/{program}.log', encoding='utf-8', errors='replace') as text:
      return ''.join(text.readlines()[-count:])

  def stop(self):
    for program in reversed(PROGRAMS):
      if program in self.running:
        self.kill(program)


def why_not(folder):
  """Why the programs of a folder cannot run here; empty: they can."""
  if not folder:
    return 'DEVMGR_CLUSTER_BIN names no folder with the programs of a control plane'
  for program in PROGRAMS:
    if not os.access(f'{folder}/{program}', os.X_OK):
      return f'{folder} (DEVMGR_CLUSTER_BIN) has no program {program}'
  if shutil.which('openssl') is None:
    return 'there is no openssl for the certificates'
  with open('/proc/meminfo', encoding='utf-8') as text:
    available = [int(line.split()[1]) for line in text if line.startswith('MemAvailable:')]
  if available[0] < 1500 * 1024:
    return f'a control plane needs 1.5 GB of memory; {available[0] // 1024} MB are available'
  return ''
