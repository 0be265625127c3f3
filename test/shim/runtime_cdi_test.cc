// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_cdi.h"

#include <gmock/gmock.h>

namespace devmgr::shim {
namespace {

using ::testing::HasSubstr;

RuntimeSupport Decide(const std::string& name, const std::string& version,
                      const std::string& config = "") {
  cri::TextMap info;
  if (!config.empty()) info["config"] = config;
  return DecideRuntimeCdi(std::nullopt, {name, version}, info);
}

constexpr char kOn[] = R"({"enableCDI": true, "cdiSpecDirs": ["/etc/cdi"]})";
constexpr char kOff[] = R"({"enableCDI": false})";

// BO-076.
TEST(RuntimeCdi, ContainerdOfOldHasNone) {
  const RuntimeSupport support = Decide("containerd", "1.6.33");
  EXPECT_EQ(support.cdi, RuntimeCdi::kNone);
  EXPECT_EQ(support.source, "version");
  EXPECT_THAT(support.reason, HasSubstr("containerd 1.6.33"));
  EXPECT_EQ(Decide("containerd", "1.6.20~ds1").cdi, RuntimeCdi::kNone);
}

// BO-077.
TEST(RuntimeCdi, TheConfigurationOfContainerdDecides) {
  EXPECT_EQ(Decide("containerd", "1.7.10", kOff).cdi, RuntimeCdi::kNone);
  EXPECT_EQ(Decide("containerd", "v2.1.0", kOff).cdi, RuntimeCdi::kNone);
  const RuntimeSupport on = Decide("containerd", "1.7.10", kOn);
  EXPECT_EQ(on.cdi, RuntimeCdi::kFieldAndAnnotations);
  EXPECT_EQ(on.source, "status");
  EXPECT_EQ(Decide("containerd", "1.7.10").cdi, RuntimeCdi::kNone);
  EXPECT_EQ(Decide("containerd", "2.0.0").cdi,
            RuntimeCdi::kFieldAndAnnotations);
}

// BO-078.
TEST(RuntimeCdi, VersionsDifferInWhatTheyRead) {
  EXPECT_EQ(Decide("containerd", "1.7.1", kOn).cdi, RuntimeCdi::kAnnotations);
  EXPECT_EQ(Decide("cri-o", "1.27.4").cdi, RuntimeCdi::kAnnotations);
  EXPECT_EQ(Decide("cri-o", "1.28.0").cdi, RuntimeCdi::kFieldAndAnnotations);
  EXPECT_EQ(Decide("cri-o", "1.23.5").cdi, RuntimeCdi::kNone);
}

TEST(RuntimeCdi, OthersAreTakenToHaveNone) {
  const std::string more = std::string(kOn) + '\0' + "and more";
  const std::string deep = R"({"enableCDI": true, "a": )" +
                           std::string(300, '[') + std::string(300, ']') + "}";
  for (const std::string& config :
       {std::string(), std::string("{"), std::string("[]"),
        std::string(R"({"enableCDI": "yes"})"), more, deep}) {
    const RuntimeSupport support = Decide("own-runtime", "3.0", config);
    EXPECT_EQ(support.cdi, RuntimeCdi::kNone) << config;
    EXPECT_EQ(support.source, "default") << config;
  }
  EXPECT_EQ(Decide("containerd", "unknown").source, "default");
}

// BO-079.
TEST(RuntimeCdi, TheOperatorWinsAndIsWarned) {
  const RuntimeSupport support =
      DecideRuntimeCdi(RuntimeCdi::kField, {"containerd", "1.6.33"}, {});
  EXPECT_EQ(support.cdi, RuntimeCdi::kField);
  EXPECT_EQ(support.source, "override");
  EXPECT_THAT(support.warning, HasSubstr("containerd 1.6.33 has no CDI"));
  EXPECT_EQ(
      DecideRuntimeCdi(RuntimeCdi::kNone, {"containerd", "1.6.33"}, {}).warning,
      "");
}

}  // namespace
}  // namespace devmgr::shim
