// SPDX-License-Identifier: Apache-2.0
//
// What a source reads is bounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "source/file_source_fixture.h"

namespace devmgr::source {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FileSourceLimitTest : public FileSourceTest {
 protected:
  FileSourceOptions Options() {
    FileSourceOptions options;
    options.directory = folder_.path();
    return options;
  }
};

TEST_F(FileSourceLimitTest, FilesBeyondTheLimitAreReportedAndNothingVanishes) {
  for (const char* name : {"a", "b", "c"}) {
    folder_.Put(std::string(name) + ".yaml", PodText(name));
  }
  FileSourceOptions options = Options();
  options.max_files = 2;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"}, false)),
              HasSubstr("holds 3 manifests, more than the 2 that are read"));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPods({"b", "c"})->problems, IsEmpty());
}

TEST_F(FileSourceLimitTest, LargeFilesAreReported) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b") + "# " + std::string(1000, 'x'));
  FileSourceOptions options = Options();
  options.max_file_bytes = 900;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a"}, false)),
              HasSubstr("more than the 900 that are read"));
}

TEST_F(FileSourceLimitTest, TooMuchInAllIsReported) {
  for (const char* name : {"a", "b", "c"}) {
    folder_.Put(std::string(name) + ".yaml", PodText(name));
  }
  FileSourceOptions options = Options();
  options.max_total_bytes = 2 * PodText("a").size();
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"}, false)),
              HasSubstr("c.yaml: the manifests up to this one hold"));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPods({"b", "c"})->problems, IsEmpty());
}

TEST_F(FileSourceLimitTest, LinksToTooManyDirectoriesAreServedButRemarkedOn) {
  for (const char* name : {"a", "b"}) {
    fs::create_directory(folder_.root() / name);
    SlowWriter writer(folder_.root() / name / "x");
    writer.Write(PodText(name));
    fs::create_symlink(folder_.root() / name / "x",
                       folder_ / (std::string(name) + ".yaml"));
  }
  FileSourceOptions options = Options();
  options.max_link_directories = 1;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"})),
              AllOf(HasSubstr("b.yaml: leads to"), HasSubstr("not watched"),
                    Not(HasSubstr("a.yaml: leads"))));
}

}  // namespace
}  // namespace devmgr::source
