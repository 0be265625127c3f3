# SPDX-License-Identifier: Apache-2.0
"""A client of an API server, of few words."""

import http.client
import json
import ssl
import urllib.parse

RESOURCES = {  # kind: (path of its group and version, resource, namespaced)
    'ClusterRole': ('/apis/rbac.authorization.k8s.io/v1', 'clusterroles', False),
    'ClusterRoleBinding': ('/apis/rbac.authorization.k8s.io/v1', 'clusterrolebindings', False),
    'DeviceClass': ('/apis/resource.k8s.io/v1', 'deviceclasses', False),
    'Namespace': ('/api/v1', 'namespaces', False),
    'Node': ('/api/v1', 'nodes', False),
    'Pod': ('/api/v1', 'pods', True),
    'ResourceClaim': ('/apis/resource.k8s.io/v1', 'resourceclaims', True),
    'ResourceClaimTemplate': ('/apis/resource.k8s.io/v1', 'resourceclaimtemplates', True),
    'ResourceSlice': ('/apis/resource.k8s.io/v1', 'resourceslices', False),
}


class Refused(Exception):
  """The server's answer that is no success."""

  def __init__(self, code, message):
    super().__init__(f'{code}: {message}')
    self.code = code


def path_of(kind, name='', namespace='default'):
  group, resource, namespaced = RESOURCES[kind]
  place = f'{group}/namespaces/{namespace}' if namespaced else group
  return f'{place}/{resource}' + (f'/{name}' if name else '')


class Api:
  """Requests with the certificate of one account, each on a connection of its own."""

  def __init__(self, port, folder, account):
    self._port = port
    self._files = (f'{folder}/ca.crt', f'{folder}/{account}.crt', f'{folder}/{account}.key')

  def call(self, method, path, body=None, kind='application/json'):
    """The decoded answer. Raises Refused, or OSError when there is no server."""
    authority, certificate, key = self._files
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    connection = http.client.HTTPSConnection('127.0.0.1', self._port, timeout=30,
                                             context=context)
    try:
      connection.request(method, path, None if body is None else json.dumps(body),
                         {'Content-Type': kind, 'Accept': 'application/json'})
      answer = connection.getresponse()
      text = answer.read().decode()
    except http.client.HTTPException as error:
      raise ConnectionError(str(error)) from error
    finally:
      connection.close()
    if answer.status >= 300:
      raise Refused(answer.status, text.strip())
    return json.loads(text) if text.startswith('{') else text

  def create(self, manifest):
    namespace = manifest['metadata'].get('namespace', 'default')
    return self.call('POST', path_of(manifest['kind'], namespace=namespace), manifest)

  def get(self, kind, name):
    """The object; None where there is none."""
    try:
      return self.call('GET', path_of(kind, name))
    except Refused as refused:
      if refused.code != 404:
        raise
      return None

  def list(self, kind, **query):
    query = '?' + urllib.parse.urlencode(query) if query else ''
    return self.call('GET', path_of(kind) + query)['items']

  def patch(self, kind, name, change, part=''):
    return self.call('PATCH', path_of(kind, name) + part, change,
                     'application/merge-patch+json')

  def delete(self, kind, name, grace=None, uid=None):
    """False: there is none of this name, or it is another object by now."""
    options = {'kind': 'DeleteOptions', 'apiVersion': 'v1'}
    if grace is not None:
      options['gracePeriodSeconds'] = grace
    if uid is not None:
      options['preconditions'] = {'uid': uid}
    try:
      self.call('DELETE', path_of(kind, name), options)
    except Refused as refused:
      if refused.code not in (404, 409):
        raise
      return False
    return True
