// SPDX-License-Identifier: Apache-2.0
#include "plugin/allocate_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/status_codes.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using device::ContainerEdits;
using testing::HasSubstr;

ContainerEdits Good() {
  ContainerEdits edits;
  edits.env = {{"GPU", "0"}, {"lower.case-too", ""}};
  edits.mounts = {{"/in", "/out", true}};
  edits.devices = {{"/dev/a", "/dev/b", "mrw"}, {"/dev/c", "/dev/c", ""}};
  edits.annotations = {{"cdi.k8s.io/x", "a.com/b=c"}};
  edits.cdi_devices = {"a.com/b=c"};
  return edits;
}

TEST(CheckEditsTest, TakesWhatPluginsSend) {
  EXPECT_THAT(CheckEdits(Good()), IsOk());
  EXPECT_THAT(CheckEdits({}), IsOk());
}

template <typename Change>
absl::Status CheckAfter(Change change) {
  ContainerEdits edits = Good();
  change(edits);
  return CheckEdits(edits);
}

TEST(CheckEditsTest, NamesTheEnvVariableThatCannotBe) {
  const auto with = [](const std::string& name, const std::string& value) {
    return CheckAfter([&](auto& edits) { edits.env.push_back({name, value}); });
  };
  EXPECT_THAT(with("", "v"), StatusIs(kInvalid, "env name is empty"));
  EXPECT_THAT(with("A=B", "v"),
              StatusIs(kInvalid, HasSubstr("env name 'A=B' has a '='")));
  EXPECT_THAT(with("A\n", "v"), StatusIs(kInvalid, HasSubstr("control")));
  EXPECT_THAT(with("A", std::string("a\0b", 3)),
              StatusIs(kInvalid, HasSubstr("env 'A': value")));
  EXPECT_THAT(with("A", "\xff"),
              StatusIs(kInvalid, HasSubstr("env 'A': value '\\xff' is not")));
  EXPECT_THAT(with("A", std::string(kMaxValueBytes + 1, 'v')),
              StatusIs(kInvalid, HasSubstr("131073 bytes")));
  EXPECT_THAT(with("A", "two\nlines"), IsOk());
}

TEST(CheckEditsTest, NamesThePathThatCannotBe) {
  const auto mount = [](const std::string& in, const std::string& out) {
    return CheckAfter([&](auto& edits) {
      edits.mounts.push_back({in, out, false});
    });
  };
  EXPECT_THAT(mount("in", "/out"),
              StatusIs(kInvalid,
                       "mount: container path 'in' is not an "
                       "absolute path"));
  EXPECT_THAT(mount("/in", ""),
              StatusIs(kInvalid,
                       "mount '/in': host path '' is not an absolute "
                       "path"));
  EXPECT_THAT(mount("/in", "/" + std::string(kMaxPathBytes, 'x')),
              StatusIs(kInvalid, HasSubstr("4097 bytes")));
  const auto node = [](const std::string& path, const std::string& bits) {
    return CheckAfter([&](auto& edits) {
      edits.devices.push_back({"/dev/x", path, bits});
    });
  };
  EXPECT_THAT(node("x", "r"),
              StatusIs(kInvalid, HasSubstr("'/dev/x': host path 'x'")));
  EXPECT_THAT(node("/x", "rwx"),
              StatusIs(kInvalid, HasSubstr("permissions 'rwx' are not among")));
  EXPECT_THAT(node("/x", "rrrr"), StatusIs(kInvalid));
}

TEST(CheckEditsTest, NamesTheAnnotationAndTheCdiDeviceThatCannotBe) {
  EXPECT_THAT(CheckAfter([](auto& edits) {
                edits.annotations.push_back({"", "v"});
              }),
              StatusIs(kInvalid, "annotation name is empty"));
  EXPECT_THAT(
      CheckAfter([](auto& edits) { edits.cdi_devices.push_back("gpu0"); }),
      StatusIs(kInvalid, HasSubstr("gpu0")));
  EXPECT_THAT(CheckAfter([](auto& edits) {
                edits.cdi_devices.push_back(std::string(2'000, 'x'));
              }),
              StatusIs(kInvalid, HasSubstr("2000 bytes")));
}

TEST(CheckEditsTest, BoundsEachKind) {
  EXPECT_THAT(CheckAfter([](auto& edits) {
                edits.mounts.assign(kMaxEdits + 1, {"/a", "/b", false});
              }),
              StatusIs(kInvalid, "4097 mounts, at most 4096 are allowed"));
}

}  // namespace
}  // namespace devmgr::plugin
