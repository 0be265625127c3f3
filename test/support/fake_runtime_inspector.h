// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/runtime_inspection.h>

#include <functional>
#include <string>
#include <vector>

namespace devmgr {

/// What a runtime shows; shared by all connections of a test.
struct FakeRuntimeView {
  absl::Status error;  ///< Not OK: nothing can be asked.
  std::vector<RuntimeContainer> containers;
  RuntimeContainerConfig config;  ///< Of each of them.
  absl::Status config_error;
  std::function<void()> on_list;  ///< After a list was made.
};

/// A runtime over a value; borrowed.
class FakeRuntimeInspector : public RuntimeInspector {
 public:
  explicit FakeRuntimeInspector(FakeRuntimeView& view) : view_(view) {}

  std::string Runtime() const override { return "containerd 1.6.33"; }

  absl::StatusOr<std::vector<RuntimeContainer>> Containers() override {
    if (!view_.error.ok()) return view_.error;
    auto containers = view_.containers;
    if (view_.on_list) view_.on_list();
    return containers;
  }
  absl::StatusOr<RuntimeContainerConfig> ConfigOf(const std::string&) override {
    if (!view_.config_error.ok()) return view_.config_error;
    return view_.config;
  }

 private:
  FakeRuntimeView& view_;
};

}  // namespace devmgr
