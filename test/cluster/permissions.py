# SPDX-License-Identifier: Apache-2.0
"""What the node asks the server for, and with which permissions."""

import collections
import os
import re

from interop import Program, run, wait_for
from cluster import GPU, container
from control_plane import NODE

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs',
                        'cluster.md')
ALLOWED = {  # (verb, resource) that a node may send; '' is discovery
    ('list', 'pods'), ('watch', 'pods'), ('get', 'pods'), ('get', 'resourceclaims'), ('get', ''),
    # What is written, and read for that.
    ('patch', 'nodes/status'), ('get', 'nodes'), ('create', 'events'), ('patch', 'events'),
    ('list', 'resourceslices'), ('watch', 'resourceslices'), ('delete', 'resourceslices'),
    ('deletecollection', 'resourceslices'), ('patch', 'pods/status'), ('delete', 'pods'),
}


def rules_of_the_document():
  """The rules of the ClusterRole in docs/cluster.md."""
  with open(DOCUMENT, encoding='utf-8') as text:
    lines = re.findall(r'^- \{apiGroups: \[(.*?)\], resources: \[(.*?)\], verbs: \[(.*?)\]\}$',
                       text.read(), re.MULTILINE)
  names = lambda words: [word.strip().strip('"') for word in words.split(',')]  # noqa: E731
  return [{'apiGroups': names(groups), 'resources': names(resources), 'verbs': names(verbs)}
          for groups, resources, verbs in lines]


def another_account(cluster):
  """A second devmgrd, which has no driver, with the account of the document."""
  cluster.make_role('agent', rules_of_the_document(), 'agents')
  cluster.make_pod('seen', [container('main', limits={GPU: 1})])
  cluster.ready('seen')
  root = cluster.folder + '/agent'
  os.makedirs(root)
  daemon = Program(root + '/devmgrd.log', cluster.node.tool('devmgrd'), '--root', root,
                   '--node-name', NODE, '--kubeconfig', cluster.plane.kubeconfigs['agent'],
                   '--cdi-spec-dir', root + '/cdi')

  def explained():
    done = run([cluster.node.tool('devmgrctl'), '--endpoint', root + '/devmgr.sock', 'explain',
                'pod', 'seen'])
    return done.stdout + done.stderr

  try:
    # It waits for the driver: so it has read the pod and its claim.
    cluster.check(wait_for(lambda: 'gpu.example.com' in explained()),
                  'permissions: the ClusterRole of docs/cluster.md is enough',
                  explained() + '\n'.join(daemon.lines()))
  finally:
    daemon.stop()
  cluster.api.delete('Pod', 'seen', grace=0)
  cluster.released('seen')


def requests(cluster):
  """All that the node has asked for in this run."""
  asked = collections.Counter()
  refused = {}
  for each in cluster.plane.requests():
    if each['stage'] != 'ResponseComplete':
      continue
    what = each.get('objectRef', {})
    resource = what.get('resource', '')
    if what.get('subresource'):
      resource += '/' + what['subresource']
    asked[each['verb'], resource] += 1
    # A server that has just started refuses what it grants a moment later;
    # what versions it has is asked for again with a delay that may outlast us.
    status = each.get('responseStatus', {})
    early = ('no relationship found', 'cannot get path "/apis/resource.k8s.io"')
    message = status.get('message', '')
    if status.get('code') == 403 and not any(text in message for text in early):
      refused[each['verb'], resource] = message
    else:
      refused.pop((each['verb'], resource), None)
  cluster.check(asked and not set(asked) - ALLOWED,
                'permissions: the node asks for nothing else', str(set(asked) - ALLOWED))
  cluster.check(not refused, 'permissions: nothing is refused but what comes too early',
                str(refused))
  prepared = len(set(cluster.node.said('prepared')))
  gets = asked['get', 'resourceclaims']
  cluster.check(prepared <= gets <= 2 * prepared,
                f'permissions: {gets} reads of claims for {prepared} prepared ones')


def all_cases(cluster):
  another_account(cluster)
  requests(cluster)
