// SPDX-License-Identifier: Apache-2.0
//
// The text of a spec file into a CdiSpec, as strict and as lenient as the CDI
// project's Go reader: unknown members are errors, case does not matter in
// their names, scalars are text where text is wanted, null is absent.
#include <devmgr/cdi_spec.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "api/parser.h"
#include "api/problems.h"
#include "api/quote.h"
#include "api/value.h"
#include "cdi/spec_problems.h"
#include "cdi/spec_rules.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

using api::Quoted;
using api::Value;
using Kind = api::Value::Kind;

/// Where a value stands. A chain on the stack: the text is needed for errors
/// only.
struct Place {
  const Place* parent = nullptr;
  std::string_view member;
  std::size_t index = 0;  ///< In a list, when `member` is empty.

  std::string ToString() const {
    if (parent == nullptr) return "";
    const std::string base = parent->ToString();
    if (member.empty()) return fmt::format("{}[{}]", base, index);
    return base.empty() ? std::string(member)
                        : fmt::format("{}.{}", base, member);
  }
};

/// A member that an object may have, and what takes its value.
struct Member {
  std::string_view name;
  std::function<void(const Value&, const Place&)> read;
};

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool EqualInAnyCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

/// A number as Go prints it when it becomes a text.
std::string FloatText(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return text;
  return fmt::format("{}", number);
}

// What a std::function owns in an initializer list counts as lost for clang 14.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)
class Reader {
 public:
  explicit Reader(api::Problems& problems) : problems_(problems) {}

  void Read(const Value& value, CdiSpec* spec) {
    const Place root;
    Object(value, root,
           {{"cdiVersion", Text(&spec->version)},
            {"kind", Text(&spec->kind)},
            {"annotations", Annotations(&spec->annotations)},
            {"devices", List(&spec->devices, &Reader::Device)},
            {"containerEdits", One(&spec->edits, &Reader::Edits)}});
    spec->version = std::string(PlainVersion(spec->version));
  }

 private:
  using Take = std::function<void(const Value&, const Place&)>;

  void Device(const Value& value, const Place& place, CdiSpecDevice* device) {
    Object(value, place,
           {{"name", Text(&device->name)},
            {"annotations", Annotations(&device->annotations)},
            {"containerEdits", One(&device->edits, &Reader::Edits)}});
  }

  void Edits(const Value& value, const Place& place, CdiContainerEdits* edits) {
    Object(value, place,
           {{"env", Texts(&edits->env)},
            {"deviceNodes", List(&edits->device_nodes, &Reader::Node)},
            {"netDevices", List(&edits->net_devices, &Reader::NetDevice)},
            {"mounts", List(&edits->mounts, &Reader::Mount)},
            {"hooks", List(&edits->hooks, &Reader::Hook)},
            {"intelRdt",
             [&](const Value& rdt, const Place& at) {
               IntelRdt(rdt, at, &edits->intel_rdt.emplace());
             }},
            {"additionalGids", List(&edits->additional_gids,
                                    &Reader::ReadNumber<std::uint32_t>)}});
  }

  void Node(const Value& value, const Place& place, CdiDeviceNode* node) {
    Object(value, place,
           {{"path", Text(&node->path)},
            {"hostPath", Text(&node->host_path)},
            {"type", Text(&node->type)},
            {"major", Number(&node->major)},
            {"minor", Number(&node->minor)},
            {"fileMode", Number(&node->file_mode)},
            {"permissions", Text(&node->permissions)},
            {"uid", Number(&node->uid)},
            {"gid", Number(&node->gid)}});
  }

  void NetDevice(const Value& value, const Place& place, CdiNetDevice* device) {
    Object(value, place,
           {{"hostInterfaceName", Text(&device->host_interface_name)},
            {"name", Text(&device->name)}});
  }

  void Mount(const Value& value, const Place& place, CdiMount* mount) {
    Object(value, place,
           {{"hostPath", Text(&mount->host_path)},
            {"containerPath", Text(&mount->container_path)},
            {"options", Texts(&mount->options)},
            {"type", Text(&mount->type)}});
  }

  void Hook(const Value& value, const Place& place, CdiHook* hook) {
    Object(value, place,
           {{"hookName", Text(&hook->hook_name)},
            {"path", Text(&hook->path)},
            {"args", Texts(&hook->args)},
            {"env", Texts(&hook->env)},
            {"timeout", Number(&hook->timeout)}});
  }

  void IntelRdt(const Value& value, const Place& place, CdiIntelRdt* rdt) {
    Object(value, place,
           {{"closID", Text(&rdt->clos_id)},
            {"l3CacheSchema", Text(&rdt->l3_cache_schema)},
            {"memBwSchema", Text(&rdt->mem_bw_schema)},
            {"schemata",
             [&](const Value& list, const Place& at) {
               ReadList(list, at, &rdt->schemata.emplace(), &Reader::ReadText);
             }},
            {"enableMonitoring", Flag(&rdt->enable_monitoring)},
            {"enableCMT", Flag(&rdt->enable_cmt)},
            {"enableMBM", Flag(&rdt->enable_mbm)}});
  }

  /// The members of an object, each with a value other than null.
  void Object(const Value& value, const Place& place,
              std::initializer_list<Member> members) {
    if (value.kind == Kind::kNull) return;
    if (value.kind != Kind::kMap) {
      return Error(value, place, "must be an object");
    }
    std::vector<const std::string*> seen(members.size());
    for (const auto& [key, member] : value.members) {
      const auto* found = members.begin();
      while (found != members.end() && !EqualInAnyCase(found->name, key)) {
        ++found;
      }
      if (found == members.end()) {
        problems_.Error(member.line, place.ToString(),
                        fmt::format("unknown member {}", Quoted(key)));
        continue;
      }
      const std::string*& first =
          seen[static_cast<std::size_t>(found - members.begin())];
      if (first != nullptr) {
        problems_.Error(member.line, place.ToString(),
                        fmt::format("{} and {} are the same member",
                                    Quoted(*first), Quoted(key)));
        continue;
      }
      first = &key;
      if (member.value->kind == Kind::kNull) continue;
      found->read(*member.value, {&place, found->name, 0});
    }
  }

  template <typename T>
  using ReadOne = void (Reader::*)(const Value&, const Place&, T*);

  template <typename T>
  Take One(T* target, ReadOne<T> read) {
    return [this, target, read](const Value& value, const Place& place) {
      (this->*read)(value, place, target);
    };
  }
  template <typename T>
  Take List(std::vector<T>* target, ReadOne<T> read) {
    return [this, target, read](const Value& value, const Place& place) {
      ReadList(value, place, target, read);
    };
  }
  Take Text(std::string* target) { return One(target, &Reader::ReadText); }
  Take Texts(std::vector<std::string>* target) {
    return List(target, &Reader::ReadText);
  }
  Take Annotations(std::map<std::string, std::string>* target) {
    return One(target, &Reader::ReadAnnotations);
  }
  template <typename T>
  Take Number(T* target) {
    return One(target, &Reader::ReadNumber<T>);
  }
  template <typename T>
  Take Number(std::optional<T>* target) {
    return [this, target](const Value& value, const Place& place) {
      ReadNumber(value, place, &target->emplace());
    };
  }
  Take Flag(bool* target) { return One(target, &Reader::ReadFlag); }
  Take Flag(std::optional<bool>* target) {
    return [this, target](const Value& value, const Place& place) {
      ReadFlag(value, place, &target->emplace());
    };
  }

  template <typename T>
  void ReadList(const Value& value, const Place& place, std::vector<T>* target,
                ReadOne<T> read) {
    if (value.kind != Kind::kList) return Error(value, place, "must be a list");
    target->resize(value.items.size());
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (value.items[i]->kind == Kind::kNull) continue;
      (this->*read)(*value.items[i], {&place, {}, i}, &(*target)[i]);
    }
  }

  void ReadText(const Value& value, const Place& place, std::string* text) {
    switch (value.kind) {
      case Kind::kNull:
        return;
      case Kind::kBool:
        *text = value.flag ? "true" : "false";
        return;
      case Kind::kFloat:
        *text = FloatText(value.text);
        return;
      case Kind::kInteger:
      case Kind::kString:
        *text = value.text;
        return;
      case Kind::kList:
      case Kind::kMap:
        return Error(value, place, "must be a text");
    }
  }

  void ReadAnnotations(const Value& value, const Place& place,
                       std::map<std::string, std::string>* annotations) {
    if (value.kind != Kind::kMap) {
      return Error(value, place, "must be an object");
    }
    for (const auto& [key, member] : value.members) {
      ReadText(*member.value, {&place, key, 0}, &(*annotations)[key]);
    }
  }

  template <typename T>
  void ReadNumber(const Value& value, const Place& place, T* number) {
    using Limits = std::numeric_limits<T>;
    if (value.kind != Kind::kInteger) {
      return Error(value, place, "must be an integer");
    }
    const char* const end = value.text.data() + value.text.size();
    const auto parsed = std::from_chars(value.text.data(), end, *number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return;
    Error(value, place,
          fmt::format("{} is out of range, {} to {} are allowed",
                      Quoted(value.text), Limits::min(), Limits::max()));
  }

  void ReadFlag(const Value& value, const Place& place, bool* flag) {
    if (value.kind != Kind::kBool) {
      return Error(value, place, "must be true or false");
    }
    *flag = value.flag;
  }

  void Error(const Value& value, const Place& place,
             const std::string& message) {
    problems_.Error(value.line, place.ToString(), message);
  }

  api::Problems& problems_;
};
// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

CdiSpec ReadSpec(std::string_view text, api::Problems& problems) {
  CdiSpec spec;
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/false);
  if (!parsed.error.empty()) {
    problems.Error(parsed.error_line, "", parsed.error);
    return spec;
  }
  if (parsed.documents.empty()) {
    problems.Error(0, "", "no spec data");
    return spec;
  }
  const Value& root = *parsed.documents.front();
  Reader(problems).Read(root, &spec);
  if (problems.error_count() > 0) return spec;
  CheckSpec(spec, [&](const std::string& field, const std::string& message) {
    problems.Error(api::LineAt(root, field), field, message);
  });
  return spec;
}

}  // namespace
}  // namespace devmgr::cdi

namespace devmgr {

absl::StatusOr<CdiSpec> ParseCdiSpec(std::string_view text,
                                     std::string_view file_name) {
  api::Problems problems(file_name);
  CdiSpec spec = cdi::ReadSpec(text, problems);
  DEVMGR_RETURN_IF_ERROR(cdi::StatusOf(problems));
  return spec;
}

}  // namespace devmgr
