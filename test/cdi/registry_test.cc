// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_registry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cdi/cdi_world.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const CdiRegistry& registry) {
  std::vector<std::string> names;
  for (const CdiRegistryDevice& device : registry.devices()) {
    names.push_back(device.name);
  }
  return names;
}

std::string EnvOf(const CdiRegistry& registry, const std::string& name) {
  const CdiRegistryDevice* device = registry.Find(name);
  return device == nullptr ? "none" : device->device->edits.env.front();
}

TEST(CdiRegistryTest, TakesTheDefinitionOfTheHighestPriority) {  // BO-034
  const auto registry = MakeRegistry(
      {{"/etc/cdi/a.yaml", SpecText({{"d", "env: [A=static]"}})},
       {"/var/run/cdi/b.yaml", SpecText({{"d", "env: [A=generated]"}})}});
  EXPECT_EQ(EnvOf(*registry, "v.com/c=d"), "A=generated");
  EXPECT_THAT(registry->conflicts(), IsEmpty());
  for (const CdiSpecFile& file : registry->files()) {
    EXPECT_THAT(registry->ProblemsOf(file).errors, IsEmpty());
    EXPECT_THAT(registry->ProblemsOf(file).warnings, IsEmpty());
  }
}

TEST(CdiRegistryTest, HasNoDeviceThatTwoFilesDefine) {  // BO-035
  const auto registry =
      MakeRegistry({{"/etc/cdi/a.yaml",
                     SpecText({{"d", "env: [A=1]"}, {"e", "env: [A=e]"}})},
                    {"/etc/cdi/b.yaml", SpecText({{"d", "env: [A=2]"}})}});
  EXPECT_THAT(NamesOf(*registry), ElementsAre("v.com/c=e"));
  EXPECT_EQ(registry->Find("v.com/c=d"), nullptr);
  const auto names_both =
      AllOf(HasSubstr("conflicting device 'v.com/c=d'"),
            HasSubstr("/etc/cdi/a.yaml"), HasSubstr("/etc/cdi/b.yaml"));
  // Of a file the other one is to be named.
  const auto& files = registry->files();
  EXPECT_THAT(registry->ProblemsOf(files[0]).errors,
              ElementsAre("conflicting device 'v.com/c=d': also defined by "
                          "/etc/cdi/b.yaml"));
  EXPECT_THAT(registry->ProblemsOf(files[1]).errors,
              ElementsAre("conflicting device 'v.com/c=d': also defined by "
                          "/etc/cdi/a.yaml"));
  EXPECT_THAT(registry->ExplainFailedLookup("v.com/c=d"), names_both);
}

TEST(CdiRegistryTest, ThreeEqualDefinitionsAreOneConflict) {
  const std::string text = SpecText({{"d", "env: [A=1]"}});
  const auto registry = MakeRegistry({{"/etc/cdi/a.yaml", text},
                                      {"/etc/cdi/b.yaml", text},
                                      {"/etc/cdi/c.yaml", text}});
  ASSERT_EQ(registry->conflicts().size(), 1u);
  EXPECT_EQ(registry->conflicts()[0].paths.size(), 3u);
}

TEST(CdiRegistryTest, AConflictBelowACleanDefinitionIsAWarning) {  // BO-037
  const auto registry =
      MakeRegistry({{"/etc/cdi/a.yaml", SpecText({{"d", "env: [A=1]"}})},
                    {"/etc/cdi/b.yaml", SpecText({{"d", "env: [A=2]"}})},
                    {"/var/run/cdi/c.yaml", SpecText({{"d", "env: [A=3]"}})}});
  EXPECT_EQ(EnvOf(*registry, "v.com/c=d"), "A=3");
  ASSERT_EQ(registry->conflicts().size(), 1u);
  EXPECT_FALSE(registry->conflicts()[0].is_effective);
  const auto problems = registry->ProblemsOf(registry->files()[0]);
  EXPECT_THAT(problems.errors, IsEmpty());
  EXPECT_EQ(problems.warnings.size(), 1u);
  EXPECT_THAT(registry->ProblemsOf(registry->files()[2]).warnings, IsEmpty());
}

TEST(CdiRegistryTest, DoesNotFallBackBelowAConflict) {
  const auto registry =
      MakeRegistry({{"/etc/cdi/a.yaml", SpecText({{"d", "env: [A=1]"}})},
                    {"/var/run/cdi/b.yaml", SpecText({{"d", "env: [A=2]"}})},
                    {"/var/run/cdi/c.yaml", SpecText({{"d", "env: [A=3]"}})}});
  EXPECT_EQ(registry->Find("v.com/c=d"), nullptr);
  EXPECT_THAT(registry->Vendors(), ElementsAre("v.com"));
}

TEST(CdiRegistryTest, ADirectoryListedTwiceIsNoConflict) {
  const std::string text = SpecText({{"d", "env: [A=1]"}});
  const CdiRegistry registry({MakeCdiSpecFile("/etc/cdi/a.yaml", 0, text),
                              MakeCdiSpecFile("/etc/cdi/a.yaml", 1, text)});
  EXPECT_NE(registry.Find("v.com/c=d"), nullptr);
  EXPECT_THAT(registry.conflicts(), IsEmpty());
}

TEST(CdiRegistryTest, ABadFileDisablesOnlyItsOwnDevices) {  // BO-041
  const auto registry =
      MakeRegistry({{"/etc/cdi/a.yaml", SpecText({{"d", "env: [A=1]"}})},
                    {"/etc/cdi/b.yaml", "cdiVersion: [\n"}},
                   {"cannot read directory '/var/run/cdi': denied"});
  EXPECT_NE(registry->Find("v.com/c=d"), nullptr);
  EXPECT_EQ(registry->ProblemsOf(registry->files()[1]).errors.size(), 1u);
  EXPECT_THAT(registry->ExplainFailedLookup("v.com/c=x"),
              AllOf(HasSubstr("no CDI spec defines 'v.com/c=x'"),
                    HasSubstr("no valid spec: /etc/cdi/b.yaml"),
                    HasSubstr("'/var/run/cdi'")));
}

TEST(CdiRegistryTest, ListsVendorsAndClassesSorted) {
  const auto spec = [](const std::string& kind) {
    return "cdiVersion: 0.6.0\nkind: " + kind +
           "\ndevices: [{name: d, containerEdits: {env: [A=1]}}]\n";
  };
  const auto registry = MakeRegistry({{"/etc/cdi/1.yaml", spec("z.com/gpu")},
                                      {"/etc/cdi/2.yaml", spec("a.com/nic.x")},
                                      {"/etc/cdi/3.yaml", spec("a.com/gpu")}});
  EXPECT_THAT(registry->Vendors(), ElementsAre("a.com", "z.com"));
  EXPECT_THAT(registry->Classes(), ElementsAre("gpu", "nic.x"));
  EXPECT_THAT(NamesOf(*registry),
              ElementsAre("a.com/gpu=d", "a.com/nic.x=d", "z.com/gpu=d"));
}

TEST(CdiRegistryTest, FilesAreEqualByWhatTheySay) {
  const std::string text = SpecText({{"d", "env: [A=1]"}});
  const CdiSpecFile file = MakeCdiSpecFile("/a", 0, text);
  EXPECT_EQ(file, MakeCdiSpecFile("/a", 0, text + "# comment\n"));
  EXPECT_NE(file, MakeCdiSpecFile("/a", 1, text));
  EXPECT_NE(file, MakeCdiSpecFile("/a", 0, ""));
  EXPECT_NE(file, MakeCdiSpecFile("/a", 0, SpecText({{"d", "env: [A=2]"}})));
}

}  // namespace
}  // namespace devmgr
