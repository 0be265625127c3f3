# SPDX-License-Identifier: Apache-2.0
"""A new node whose server does not answer, or whose certificate has expired."""

from control_plane import NEW_NODE
from interop import wait_for

ACCOUNT = 'new-node'


def shows(node, *parts):
  """Whether the daemon answers, and its status has one of these."""
  status = node.ctl('status')
  return status.returncode == 0 and any(part in status.stdout for part in parts)


def follows(node):
  return 'Watching' in node.ctl('get', 'sources').stdout


def told(node):
  """Whether trouble with the source is an event."""
  return 'SourceProblem' in node.ctl('events').stdout


def begin(cluster, folder):
  node = cluster.node.another(f'{cluster.folder}/{folder}', NEW_NODE, ACCOUNT)
  node.start()
  return node


def check(cluster, node, good, name):
  detail = '' if good else node.story() + node.ctl('events').stdout
  return cluster.check(good, 'first start: ' + name, detail)


def without_a_server(cluster):
  cluster.plane.kill('kube-apiserver')
  node = begin(cluster, 'away')
  try:
    server = f'127.0.0.1:{cluster.plane.port}'
    check(cluster, node, wait_for(lambda: shows(node, server)),
          'devmgrd runs though the server does not answer, and says so')
    check(cluster, node, wait_for(lambda: told(node)), 'that is an event')
    cluster.plane.start_api_server()
    check(cluster, node, wait_for(cluster.plane.ready) and wait_for(lambda: follows(node)),
          'it follows the server once that is there')
  finally:
    node.stop()


def with_an_expired_certificate(cluster):
  cluster.plane.authority.sign_account(ACCOUNT, days=-1)
  node = begin(cluster, 'expired')
  try:
    check(cluster, node, wait_for(lambda: shows(node, 'expired', 'Unauthorized')),
          'devmgrd runs though its certificate has expired, and says so')
    check(cluster, node, wait_for(lambda: told(node)), 'that is an event, too')
    cluster.plane.authority.sign_account(ACCOUNT)
    check(cluster, node, wait_for(lambda: follows(node)),
          'it follows the server with the next certificate, without a restart')
  finally:
    node.stop()


def all_cases(cluster):
  # Without capacity, so that the scheduler places no pod there.
  cluster.api.create({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': NEW_NODE}})
  without_a_server(cluster)
  with_an_expired_certificate(cluster)
  cluster.api.delete('Node', NEW_NODE)
