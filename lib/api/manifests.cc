// SPDX-License-Identifier: Apache-2.0
//
// From text to objects: which kinds are read, from which versions, and what a
// file with something wrong in it yields.
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/expressions.h"
#include "api/field.h"
#include "api/parser.h"
#include "api/pod.h"
#include "api/problems.h"
#include "api/quota.h"
#include "api/quote.h"
#include "api/resource.h"
#include "api/structured_parameters.h"
#include "common/enum_names.h"

namespace devmgr {
namespace api {
namespace {

constexpr std::string_view kResourceGroup = "resource.k8s.io";
constexpr std::string_view kReadVersions =
    "v1, v1beta2, v1beta1, v1alpha3, v1alpha2 and v1alpha1";

enum class Group { kCore, kResource };

struct KnownKind {
  std::string_view kind;
  Group group;
};

constexpr KnownKind kKnownKinds[] = {
    {"Pod", Group::kCore},
    {"Node", Group::kCore},
    {"ResourceClaim", Group::kResource},
    {"ResourceClaimTemplate", Group::kResource},
    {"DeviceClass", Group::kResource},
    {"ResourceSlice", Group::kResource},
    {"DeviceTaintRule", Group::kResource},
    {"ResourceClass", Group::kResource},
    {"ResourceClassParameters", Group::kResource},
    {"ResourceClaimParameters", Group::kResource},
    {"ResourceQuota", Group::kCore},
};

/// By index into Object.
constexpr std::size_t kPodIndex = 0;
constexpr std::string_view kKindNames[] = {
    "Pod",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "ResourceSlice",
    "Node",
    "DeviceTaintRule",
    "ResourceClass",
    "ResourceClassParameters",
    "ResourceClaimParameters",
    "ResourceQuota",
};
static_assert(std::size(kKindNames) == std::variant_size_v<Object>);

/// Kinds of the group that are of no use to a node, in whatever version.
constexpr std::string_view kForeignKinds[] = {"ResourcePoolStatusRequest"};

/// `group/version`, or a version alone for the core group.
struct ApiVersion {
  std::string_view group;
  std::string_view version;
};

ApiVersion SplitApiVersion(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {"", text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

/// Groups that belong to Kubernetes, where a known kind cannot be another one.
bool IsKubernetesGroup(std::string_view group) {
  return group.find('.') == std::string_view::npos ||
         group.ends_with(".k8s.io");
}

constexpr auto kResourceVersions = EnumTable<ResourceVersion>({
    {ResourceVersion::kV1, "v1"},
    {ResourceVersion::kV1Beta2, "v1beta2"},
    {ResourceVersion::kV1Beta1, "v1beta1"},
    {ResourceVersion::kV1Alpha3, "v1alpha3"},
    {ResourceVersion::kV1Alpha2, "v1alpha2"},
    {ResourceVersion::kV1Alpha1, "v1alpha1"},
});

const KnownKind* FindKind(std::string_view kind) {
  const auto found =
      std::find_if(std::begin(kKnownKinds), std::end(kKnownKinds),
                   [&](const KnownKind& known) { return known.kind == kind; });
  return found == std::end(kKnownKinds) ? nullptr : found;
}

/// Decodes the documents of one file. Used once.
class ManifestDecoder {
 public:
  ManifestDecoder(std::string_view file, std::string_view node_name,
                  ExpressionChecker* checker)
      : problems_(file, checker), node_name_(node_name) {}

  DecodedManifest Decode(std::string_view text, bool json_only) {
    const ParsedText parsed = ParseText(text, json_only);
    if (!parsed.error.empty()) {
      problems_.Error(parsed.error_line, "", parsed.error);
    }
    for (const ValuePtr& document : parsed.documents) {
      DecodeObject(Field(*document, "", problems_), "", "");
    }
    return Finish();
  }

 private:
  /// `kind` and `api_version` stand in where an item of a typed list, such as
  /// a PodList, has none of its own.
  void DecodeObject(const Field& root, std::string kind,
                    std::string api_version);
  void DecodeList(const Field& root, const std::string& kind,
                  const std::string& api_version);
  void DecodeKnown(const Field& root, const KnownKind& known,
                   const std::string& api_version);
  void DecodeResource(const Field& root, std::string_view kind,
                      ResourceVersion version);
  bool DecodeNew(const Field& root, std::string_view kind,
                 ResourceVersion version);
  bool DecodeOld(const Field& root, std::string_view kind,
                 ResourceVersion version);
  void WarnUnused(const Field& root, const std::string& kind,
                  const std::string& api_version);
  void AddPod(const Field& root);
  void AddMalformed(const Field& root, Pod pod, std::vector<PodProblem> broken);

  void Add(const Field& root, Object object);
  bool IsFirst(const Field& root, std::size_t kind, const ObjectName& name);

  DecodedManifest Finish() {
    result_.errors = problems_.TakeErrors();
    if (!result_.errors.empty()) {
      result_.objects.clear();
      result_.malformed_pods.clear();
      result_.unusable = Unusable();
    }
    result_.warnings = problems_.TakeWarnings();
    return std::move(result_);
  }

  std::vector<ObjectProblem> Unusable() const;

  /// An object as the file names it.
  struct Named {
    std::string kind;
    ObjectName name;
    int line = 0;
  };

  Problems problems_;
  std::string_view node_name_;
  DecodedManifest result_;
  std::vector<Named> named_;  ///< The first of them.
  /// Lines of the objects so far, by index into `Object` and name.
  std::map<std::pair<std::size_t, ObjectName>, int> lines_;
};

void ManifestDecoder::DecodeObject(const Field& root, std::string kind,
                                   std::string api_version) {
  if (!root.RequireMap()) return;
  if (root["kind"].IsPresent() || kind.empty()) {
    kind = RequiredName(root["kind"], nullptr);
  }
  if (root["apiVersion"].IsPresent() || api_version.empty()) {
    api_version = RequiredName(root["apiVersion"], nullptr);
  }
  if (kind.empty() || api_version.empty()) return;
  if (const KnownKind* known = FindKind(kind)) {
    DecodeKnown(root, *known, api_version);
    return;
  }
  if (kind.ends_with("List")) {
    DecodeList(root, kind, api_version);
    return;
  }
  const auto [group, version] = SplitApiVersion(api_version);
  const bool is_foreign =
      std::find(std::begin(kForeignKinds), std::end(kForeignKinds), kind) !=
      std::end(kForeignKinds);
  if (group != kResourceGroup || kResourceVersions.Find(version) ||
      is_foreign) {
    WarnUnused(root, kind, api_version);
    return;
  }
  root["apiVersion"].Error(fmt::format(
      "version {} of {} is not supported (kind {}); {} are", Quoted(version),
      kResourceGroup, Quoted(kind), kReadVersions));
}

/// Namespace and name as far as the document has them.
ObjectName NameIn(const Field& root) {
  const Field metadata = root["metadata"];
  const auto text = [&](std::string_view key) {
    const Field field = metadata[key];
    return field.IsString() ? field.StringOr("") : std::string();
  };
  return {text("namespace"), text("name")};
}

void ManifestDecoder::WarnUnused(const Field& root, const std::string& kind,
                                 const std::string& api_version) {
  const ObjectName name = NameIn(root);
  root.Warn(fmt::format("{}{} of {} is not used by this node; skipped",
                        Quoted(kind),
                        name.name.empty() ? "" : " " + Quoted(name.ToString()),
                        Quoted(api_version)));
}

/// Each with the first error between its line and that of the next object.
std::vector<ObjectProblem> ManifestDecoder::Unusable() const {
  std::vector<ObjectProblem> unusable;
  for (auto named = named_.begin(); named != named_.end(); ++named) {
    const auto next = std::next(named);
    const auto own = std::find_if(
        result_.errors.begin(), result_.errors.end(), [&](const auto& error) {
          return error.line >= named->line &&
                 (next == named_.end() || error.line < next->line);
        });
    const ManifestProblem& error =
        own != result_.errors.end() ? *own : result_.errors.front();
    unusable.push_back({named->kind, named->name, error.ToString()});
  }
  return unusable;
}

void ManifestDecoder::DecodeList(const Field& root, const std::string& kind,
                                 const std::string& api_version) {
  const std::string item_kind = kind.substr(0, kind.size() - 4);
  const bool is_plain = item_kind.empty();
  if (is_plain && api_version != "v1") {
    root["apiVersion"].Error(
        fmt::format("kind List has version v1, not {}", Quoted(api_version)));
    return;
  }
  if (!is_plain && FindKind(item_kind) == nullptr) {
    WarnUnused(root, kind, api_version);
    return;
  }
  for (const Field& item : root["items"].Items()) {
    DecodeObject(item, item_kind, is_plain ? "" : api_version);
  }
}

void ManifestDecoder::DecodeKnown(const Field& root, const KnownKind& known,
                                  const std::string& api_version) {
  const auto [group, version] = SplitApiVersion(api_version);
  const bool is_core = known.group == Group::kCore;
  ObjectName name = NameIn(root);
  if (known.kind == "Pod" || known.kind.starts_with("ResourceClaim") ||
      known.kind == "ResourceClassParameters" ||
      known.kind == "ResourceQuota") {
    if (name.ns.empty()) name.ns = "default";
  }
  if (!name.name.empty() && named_.size() < kMaxProblems) {
    named_.push_back({std::string(known.kind), std::move(name), root.line()});
  }
  if (is_core ? api_version == "v1" : group == kResourceGroup) {
    if (is_core) {
      if (known.kind == "Pod") {
        AddPod(root);
      } else if (known.kind == "ResourceQuota") {
        Add(root, DecodeResourceQuota(root));
      } else {
        Add(root, DecodeNode(root));
      }
      return;
    }
    if (const auto resource_version = kResourceVersions.Find(version)) {
      DecodeResource(root, known.kind, *resource_version);
      return;
    }
    root["apiVersion"].Error(fmt::format(
        "version {} of {} is not supported (kind {}); {} are", Quoted(version),
        kResourceGroup, Quoted(known.kind), kReadVersions));
    return;
  }
  const std::string message = fmt::format(
      "kind {} is of {}, not of {}", known.kind,
      is_core ? "v1" : fmt::format("{} ({})", kResourceGroup, kReadVersions),
      Quoted(api_version));
  if (IsKubernetesGroup(group)) {
    root["apiVersion"].Error(message);
  } else {
    // Another project's kind of the same name.
    root["apiVersion"].Warn(message + "; skipped");
  }
}

void ManifestDecoder::DecodeResource(const Field& root, std::string_view kind,
                                     ResourceVersion version) {
  if (kind == "ResourceClaim") {
    Add(root, DecodeResourceClaim(root, version));
  } else if (kind == "ResourceClaimTemplate") {
    Add(root, DecodeResourceClaimTemplate(root, version));
  } else if (HasResourceHandles(version) ? DecodeOld(root, kind, version)
                                         : DecodeNew(root, kind, version)) {
    return;
  } else {
    root["apiVersion"].Warn(
        fmt::format("kind {} of this version is not read; skipped", kind));
  }
}

/// False: the version has no such kind.
bool ManifestDecoder::DecodeNew(const Field& root, std::string_view kind,
                                ResourceVersion version) {
  if (kind == "DeviceClass") {
    Add(root, DecodeDeviceClass(root));
  } else if (kind == "DeviceTaintRule") {
    Add(root, DecodeDeviceTaintRule(root));
  } else if (kind == "ResourceSlice") {
    Add(root, DecodeResourceSlice(root, version, node_name_));
  } else {
    return false;
  }
  return true;
}

/// The same for v1alpha2 and v1alpha1.
bool ManifestDecoder::DecodeOld(const Field& root, std::string_view kind,
                                ResourceVersion version) {
  if (kind == "ResourceClass") {
    Add(root, DecodeResourceClass(root));
  } else if (version == ResourceVersion::kV1Alpha1) {
    return false;
  } else if (kind == "ResourceClassParameters") {
    Add(root, DecodeClassParameters(root));
  } else if (kind == "ResourceClaimParameters") {
    Add(root, DecodeClaimParameters(root));
  } else if (kind == "ResourceSlice") {
    Add(root, DecodeNamedResources(root));
  } else {
    return false;
  }
  return true;
}

void ManifestDecoder::Add(const Field& root, Object object) {
  const ObjectName name =
      std::visit([](const auto& o) { return o.metadata.FullName(); }, object);
  if (!IsFirst(root, object.index(), name)) return;
  result_.objects.push_back({std::move(object), root.line()});
}

/// False, with a warning, when the file has such an object already.
bool ManifestDecoder::IsFirst(const Field& root, std::size_t kind,
                              const ObjectName& name) {
  const auto [first, is_new] = lines_.try_emplace({kind, name}, root.line());
  if (!is_new) {
    root["metadata"]["name"].Warn(
        fmt::format("{} {} is in line {} already; only the first counts",
                    kKindNames[kind], Quoted(name.ToString()), first->second));
  }
  return is_new;
}

void ManifestDecoder::AddPod(const Field& root) {
  const std::size_t errors_before = problems_.error_count();
  std::vector<PodProblem> broken;
  const std::string& base = root.path();
  Pod pod = DecodePod(root, broken);
  // What could not be read cannot be judged.
  if (problems_.error_count() != errors_before) return;
  DefaultPod(pod);
  if (pod.spec.node_name.empty()) pod.spec.node_name = node_name_;
  for (PodProblem& problem : broken) {
    // Paths from decoding begin at the document, those of rules at the pod.
    if (!base.empty()) problem.field.erase(0, base.size() + 1);
  }
  for (PodProblem& problem : ValidatePod(pod)) {
    broken.push_back(std::move(problem));
  }
  if (broken.empty()) {
    Add(root, std::move(pod));
  } else {
    AddMalformed(root, std::move(pod), std::move(broken));
  }
}

/// The path as the file spells it: the rules know today's names only.
std::string AsSpelled(const Field& root, std::string path) {
  const Field status = root["status"]["extendedResourceClaimStatus"];
  if (!status["requestMapping"].IsPresent()) return path;
  auto replace = [&path](std::string_view today, std::string_view old) {
    const std::size_t at = path.find(today);
    if (at != std::string::npos) path.replace(at, today.size(), old);
  };
  if (path.starts_with("status.extendedResourceClaimStatus.requestMappings")) {
    replace("requestMappings", "requestMapping");
    if (path.ends_with(".resourceName")) {
      replace(".resourceName", ".extendedResourceName");
    }
  }
  return path;
}

void ManifestDecoder::AddMalformed(const Field& root, Pod pod,
                                   std::vector<PodProblem> broken) {
  // A malformed pod is a pod, too.
  if (!IsFirst(root, kPodIndex, pod.metadata.FullName())) return;
  for (PodProblem& problem : broken) {
    problem.field = AsSpelled(root, std::move(problem.field));
  }
  const PodProblem all = Summary(broken);
  const std::string path =
      root.path().empty() ? all.field : JoinPath(root.path(), all.field);
  result_.malformed_pods.push_back(
      {std::move(pod),
       problems_.Make(LineAt(*root.value(), all.field), path, all.message)});
}

}  // namespace

DecodedManifest DecodeChecked(std::string_view text, std::string_view file_name,
                              std::string_view node_name,
                              ExpressionChecker* checker) {
  const bool json_only = file_name.ends_with(".json");
  return ManifestDecoder(file_name, node_name, checker).Decode(text, json_only);
}

}  // namespace api

DecodedManifest DecodeManifest(std::string_view text,
                               std::string_view file_name,
                               std::string_view node_name) {
  return api::DecodeChecked(text, file_name, node_name, nullptr);
}

}  // namespace devmgr
