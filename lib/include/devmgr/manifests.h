// SPDX-License-Identifier: Apache-2.0
//
// Reading Kubernetes objects from YAML and JSON text, as an API server would
// take them in: decoded, defaulted and validated.
#pragma once

#include <devmgr/export.h>
#include <devmgr/objects.h>
#include <devmgr/quota_objects.h>
#include <devmgr/status_types.h>

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace devmgr {

/// Any object that a manifest may hold.
using Object = std::variant<Pod, ResourceClaim, ResourceClaimTemplate,
                            DeviceClass, ResourceSlice, Node, DeviceTaintRule,
                            ResourceClass, ResourceClassParameters,
                            ResourceClaimParameters, ResourceQuota>;

/// Something to tell the author of a manifest.
struct ManifestProblem {
  std::string file;
  int line = 0;       ///< From 1; 0 when the problem has no line.
  std::string field;  ///< Path such as `spec.containers[0].name`; may be empty.
  std::string message;
  /// Of a CEL expression that does not compile: its line, and below it a caret
  /// under the place. Else empty.
  std::string excerpt;
  /// It is about the source as such, such as a server that does not answer, and
  /// about none of its objects.
  bool of_source = false;

  /// `file:line: field: message`, leaving out what is unknown.
  DEVMGR_EXPORT std::string ToString() const;
};

/// An object and where it came from.
struct DecodedObject {
  Object object;
  int line = 0;
};

/// A pod that decodes but breaks an API rule. It is kept apart so that its
/// rejection can be remembered under its UID.
struct MalformedPod {
  Pod pod;
  ManifestProblem problem;
};

/// What a manifest file holds. Without errors every object of it is usable;
/// with errors none is (a half-written file must not look complete).
struct DecodedManifest {
  std::vector<DecodedObject> objects;
  /// Pods whose content is well-typed but invalid; not in `objects`.
  std::vector<MalformedPod> malformed_pods;
  /// Syntax errors, wrong types, invalid objects other than pods.
  std::vector<ManifestProblem> errors;
  /// What was accepted with a remark: defaults taken, documents that the node
  /// does not use.
  std::vector<ManifestProblem> warnings;
  /// With errors: the objects that the file names, each with the error in its
  /// own lines, or else with the first.
  std::vector<ObjectProblem> unusable;
};

/// Decodes all documents of `text` (YAML or JSON, several documents, `List`
/// kinds). Kinds that the node does not use are skipped with a warning. Unknown
/// fields are ignored; wrong types are errors with line and field path.
/// The second of two objects of one kind and name is left out, with a warning.
/// `node_name` stands in for the node of a pod that names none, and for the
/// pool of such a ResourceSlice; may be empty. Pure and reentrant; never
/// throws.
DEVMGR_EXPORT DecodedManifest DecodeManifest(std::string_view text,
                                             std::string_view file_name,
                                             std::string_view node_name = {});

/// The claim as JSON on one line: in the shape of resource.k8s.io/v1alpha2 if
/// it has `spec.old`, else in that of v1. Decoding it yields the claim again,
/// but for what the shape cannot say: in v1 handles and controllers of
/// Kubernetes 1.31 and before, in v1alpha2 results. Never throws.
DEVMGR_EXPORT std::string EncodeResourceClaim(const ResourceClaim& claim);

/// The resource name under which every pod can ask for a class:
/// `deviceclass.resource.kubernetes.io/<class name>`. Empty when the class
/// name is too long for one (more than 63 characters).
DEVMGR_EXPORT std::string ImplicitResourceName(std::string_view class_name);

}  // namespace devmgr
