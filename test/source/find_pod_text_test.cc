// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_texts.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

class FindPodTextTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_.path() / file) << text;
  }
  static std::string PodNamed(const std::string& name,
                              const std::string& image) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           "}\nspec: {containers: [{name: c, image: " + image + "}]}\n";
  }
  absl::StatusOr<PodText> Find(const std::string& name) const {
    return FindPodText(folder_.path(), {"default", name});
  }

  const TempFolder folder_;
};

TEST_F(FindPodTextTest, TheFirstFileByNameCounts) {
  Write("b.yaml", PodNamed("p", "of-b"));
  Write("a.yml", PodNamed("q", "of-a") + "---\n" + PodNamed("p", "of-a"));
  const auto pod = Find("p");
  ASSERT_THAT(pod, IsOk());
  EXPECT_THAT(pod->json, HasSubstr("of-a"));
  EXPECT_EQ(pod->line, 6);
}

TEST_F(FindPodTextTest, FilesThatAreNoManifestsAreLeftOut) {
  Write("a.txt", PodNamed("p", "no"));
  Write(".a.yaml", PodNamed("p", "no"));
  Write("b.yaml", "kind: [");
  std::filesystem::create_directory(folder_.path() / "c.yaml");
  Write("d.json",
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
  const auto pod = Find("p");
  ASSERT_THAT(pod, IsOk());
  EXPECT_THAT(pod->json, Not(HasSubstr("no")));
}

TEST_F(FindPodTextTest, SaysWhatIsMissing) {
  EXPECT_THAT(Find("p").status(), StatusIs(absl::StatusCode::kNotFound,
                                           HasSubstr("pod 'default/p'")));
  EXPECT_THAT(FindPodText(folder_.path() / "none", {"default", "p"}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none'")));
}

}  // namespace
}  // namespace devmgr
