// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_spec.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cdi/status_codes.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

/// Random specs, valid by construction, with texts that need quoting.
class RandomSpecs {
 public:
  explicit RandomSpecs(Luck& luck) : luck_(luck) {}

  CdiSpec Next() {
    CdiSpec spec;
    spec.kind = Chance() ? "v.com/c" : "v/c.d";
    spec.annotations = Annotations();
    const std::size_t count = 1 + Below(3);
    for (std::size_t i = 0; i < count; ++i) {
      CdiSpecDevice device;
      device.name = (Chance() ? "d" : "0") + std::to_string(i);
      device.annotations = Annotations();
      device.edits = Edits();
      device.edits.env.push_back("A=" + Text());
      spec.devices.push_back(std::move(device));
    }
    if (Chance()) spec.edits = Edits();
    const bool is_new = MinimumCdiVersion(spec) == "1.1.0";
    if (!is_new && Chance()) {
      auto& rdt = spec.devices[0].edits.intel_rdt.emplace();
      if (Chance()) rdt.enable_cmt = Chance();
      if (Chance()) rdt.enable_mbm = Chance();
    }
    spec.version = MinimumCdiVersion(spec);
    return spec;
  }

 private:
  std::size_t Below(std::size_t limit) { return luck_.Below(limit); }
  bool Chance() { return Below(2) == 0; }

  std::string Text() {
    static const std::vector<std::string> kPieces = {"a",
                                                     "yes",
                                                     "0x1",
                                                     ": ",
                                                     "#",
                                                     "\"",
                                                     "\\",
                                                     "\n",
                                                     "\t",
                                                     "'",
                                                     "- ",
                                                     "\xC3\xA9",
                                                     "\x01",
                                                     "\x7F",
                                                     " ",
                                                     "{",
                                                     "]",
                                                     "&",
                                                     "*",
                                                     "!",
                                                     "|",
                                                     "%",
                                                     std::string(1, '\0'),
                                                     "\xE2\x80\xA8",
                                                     "\xF0\x9F\x98\x80",
                                                     "=",
                                                     "~"};
    std::string text;
    for (std::size_t i = Below(6); i > 0; --i) {
      text += kPieces[Below(kPieces.size())];
    }
    return text;
  }
  std::string SomeText() { return "x" + Text(); }

  std::vector<std::string> Texts(const std::string& prefix = "") {
    std::vector<std::string> texts;
    for (std::size_t i = Below(3); i > 0; --i) texts.push_back(prefix + Text());
    return texts;
  }

  std::map<std::string, std::string> Annotations() {
    std::map<std::string, std::string> annotations;
    for (const char* key : {"a.com/b", "yes", "1", "null", "x_y-z"}) {
      if (Below(8) == 0) annotations[key] = Text();
    }
    return annotations;
  }

  std::optional<std::uint32_t> Id() {
    if (Chance()) return std::nullopt;
    return Chance() ? 0 : Number();
  }

  CdiContainerEdits Edits() {
    CdiContainerEdits edits;
    edits.env = Texts("E=");
    while (Chance()) {
      CdiDeviceNode node;
      node.path = SomeText();
      if (Chance()) node.host_path = SomeText();
      node.type = std::vector<std::string>{"", "b", "c", "u", "p"}[Below(5)];
      node.major = Chance() ? 0 : static_cast<std::int64_t>(Number()) - 100;
      node.minor = Chance() ? 0 : static_cast<std::int64_t>(Number()) << 20;
      node.file_mode = Id();
      node.permissions = std::vector<std::string>{"", "rw", "none"}[Below(3)];
      node.uid = Id();
      node.gid = Id();
      edits.device_nodes.push_back(node);
    }
    if (Below(4) == 0) edits.net_devices.push_back({SomeText(), SomeText()});
    while (Chance()) {
      edits.mounts.push_back(
          {SomeText(), SomeText(), Texts(), Chance() ? "" : SomeText()});
    }
    while (Chance()) {
      edits.hooks.push_back({"prestart", SomeText(), Texts(), Texts("H="), {}});
      if (Chance()) edits.hooks.back().timeout = Below(1000);
    }
    if (Below(4) == 0) {
      auto& rdt = edits.intel_rdt.emplace();
      rdt.l3_cache_schema = Text();
      rdt.mem_bw_schema = Text();
      if (Chance()) rdt.schemata = Texts();
      rdt.enable_monitoring = Chance();
    }
    if (Chance()) edits.additional_gids = {0, Number()};
    return edits;
  }

  std::uint32_t Number() { return luck_(); }

  Luck& luck_;
};

TEST(SpecEncoderTest, WhatIsWrittenReadsAsTheSame) {
  LiveEach({1, 100}, [](Luck& luck) {
    const CdiSpec spec = RandomSpecs(luck).Next();
    for (const CdiFormat format : {CdiFormat::kJson, CdiFormat::kYaml}) {
      const auto text = EncodeCdiSpec(spec, format);
      ASSERT_THAT(text, IsOk());
      const auto read = ParseCdiSpec(*text, "");
      ASSERT_THAT(read, IsOk()) << *text;
      ASSERT_TRUE(*read == spec) << *text;
    }
  });
}

TEST(SpecEncoderTest, WritesYamlForPeople) {
  CdiSpec spec;
  spec.version = "0.6.0";
  spec.kind = "v.com/c";
  spec.annotations = {{"yes", "no"}};
  CdiSpecDevice device;
  device.name = "0";
  device.edits.env = {"A=b"};
  device.edits.device_nodes = {{"/dev/a", "", "c", 0, 0, 438, "", 0, {}}};
  spec.devices = {device};
  spec.edits.mounts = {{"/h", "/c", {"ro"}, ""}};
  const auto text = EncodeCdiSpec(spec, CdiFormat::kYaml);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, R"(cdiVersion: "0.6.0"
kind: "v.com/c"
annotations:
  "yes": "no"
devices:
- name: "0"
  containerEdits:
    env:
    - "A=b"
    deviceNodes:
    - path: "/dev/a"
      type: "c"
      fileMode: 438
      uid: 0
containerEdits:
  mounts:
  - hostPath: "/h"
    containerPath: "/c"
    options:
    - "ro"
)");
  const auto json = EncodeCdiSpec(spec, CdiFormat::kJson);
  ASSERT_THAT(json, IsOk());
  EXPECT_THAT(*json, HasSubstr("{\n  \"cdiVersion\": \"0.6.0\",\n"));
}

TEST(SpecEncoderTest, RefusesWhatNoReaderTakes) {
  CdiSpec spec;
  spec.version = "0.3.0";
  spec.kind = "v.com/c";
  EXPECT_THAT(EncodeCdiSpec(spec, CdiFormat::kJson),
              StatusIs(kInvalid, HasSubstr("no devices")));
  spec.devices.push_back({"d", {}, {}});
  spec.devices[0].edits.env = {"A=\xFF"};
  for (const CdiFormat format : {CdiFormat::kJson, CdiFormat::kYaml}) {
    EXPECT_THAT(EncodeCdiSpec(spec, format), StatusIs(kInvalid));
  }
  spec.version = "0.6.0";
  spec.devices[0].edits.env = {"A=1"};
  spec.devices[0].annotations = {{"a b", ""}};
  EXPECT_THAT(EncodeCdiSpec(spec, CdiFormat::kJson),
              StatusIs(kInvalid, HasSubstr("'a b'")));
  spec.devices[0].annotations = {{"a", std::string(9 << 20, 'x')}};
  EXPECT_THAT(EncodeCdiSpec(spec, CdiFormat::kJson),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace devmgr
