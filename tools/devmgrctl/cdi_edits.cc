// SPDX-License-Identifier: Apache-2.0
#include "cdi_edits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace devmgr::ctl {
namespace {

std::string TextOf(const std::string& variable, bool show_env) {
  if (show_env) return variable;
  return variable.substr(0, variable.find('=')) + "=***";
}

std::string TextOf(const CdiDeviceNode& node) {
  std::string text = fmt::format(
      "{}:{}:{}", node.host_path.empty() ? node.path : node.host_path,
      node.path, node.permissions.empty() ? "rwm" : node.permissions);
  if (!node.type.empty()) text += " " + node.type;
  if (node.major != 0) text += fmt::format(" {}:{}", node.major, node.minor);
  return text;
}

std::string TextOf(const CdiMount& mount) {
  return fmt::format("{}:{}{}{}{}{}", mount.host_path, mount.container_path,
                     mount.options.empty() ? "" : ":",
                     fmt::join(mount.options, ","),
                     mount.type.empty() ? "" : " ", mount.type);
}

std::string TextOf(const CdiHook& hook) {
  std::string text = hook.hook_name + " " + hook.path;
  // The first argument is the program's name.
  for (std::size_t i = 1; i < hook.args.size(); ++i) text += " " + hook.args[i];
  return text;
}

std::string TextOf(const CdiIntelRdt& rdt) {
  std::vector<std::string> parts;
  if (!rdt.clos_id.empty()) parts.push_back("closID=" + rdt.clos_id);
  if (!rdt.l3_cache_schema.empty()) parts.push_back(rdt.l3_cache_schema);
  if (!rdt.mem_bw_schema.empty()) parts.push_back(rdt.mem_bw_schema);
  if (rdt.schemata.has_value()) {
    parts.insert(parts.end(), rdt.schemata->begin(), rdt.schemata->end());
  }
  if (rdt.enable_monitoring || rdt.enable_cmt || rdt.enable_mbm) {
    parts.emplace_back("monitoring");
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace

std::vector<EditRow> RowsOf(const CdiContainerEdits& edits, bool show_env) {
  std::vector<EditRow> rows;
  for (const std::string& variable : edits.env) {
    rows.push_back({"environment", TextOf(variable, show_env)});
  }
  for (const CdiDeviceNode& node : edits.device_nodes) {
    rows.push_back({"device node", TextOf(node)});
  }
  for (const CdiNetDevice& device : edits.net_devices) {
    rows.push_back(
        {"net device", device.host_interface_name + ":" + device.name});
  }
  for (const CdiMount& mount : edits.mounts) {
    rows.push_back({"mount", TextOf(mount)});
  }
  for (const CdiHook& hook : edits.hooks) {
    rows.push_back({"hook", TextOf(hook)});
  }
  if (edits.intel_rdt.has_value()) {
    rows.push_back({"RDT", TextOf(*edits.intel_rdt)});
  }
  for (const std::uint32_t gid : edits.additional_gids) {
    rows.push_back({"group", fmt::format("{}", gid)});
  }
  return rows;
}

Json ItemOf(const CdiContainerEdits& edits) {
  if (edits.Count() == 0) return Json::object();
  CdiSpec spec;
  spec.kind = "vendor/class";
  spec.devices = {{"device", {}, edits}};
  spec.version = MinimumCdiVersion(spec);
  const auto text = EncodeCdiSpec(spec, CdiFormat::kJson);
  // Edits that were read from a spec can be written into one.
  if (!text.ok()) return {{"error", MessageOf(text.status())}};
  const Json json = Json::parse(*text, nullptr, false);
  return json.at("devices").at(0).at("containerEdits");
}

}  // namespace devmgr::ctl
