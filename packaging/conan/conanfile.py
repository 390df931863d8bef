"""Brontes for Conan 2, out of the checkout or release this file is in: conan create packaging/conan"""
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, rmdir
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain
from conan.tools.gnu import PkgConfigDeps


class Brontes(ConanFile):
    name = "brontes"
    version = "0.1.0"
    license = "MIT"
    description = "Vulkan-native compute: batches of tensor ops in one command buffer"
    topics = ("vulkan", "compute", "tensor")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "tools": [True, False]}
    default_options = {"shared": False, "fPIC": True, "tools": False}

    def export_sources(self):
        root = os.path.join(self.recipe_folder, os.pardir, os.pardir)
        for folder in ("kernels", "lib", "packaging", "tools", "subprojects/packagefiles"):
            copy(self, f"{folder}/*", root, self.export_sources_folder)
        for file in ("meson.build", "meson_options.txt", "LICENSE", "subprojects/*.wrap"):
            copy(self, file, root, self.export_sources_folder)

    def config_options(self):
        if self.settings.os == "Windows":
            del self.options.fPIC

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        basic_layout(self, src_folder=".")

    def requirements(self):
        self.requires("vulkan-headers/[>=1.3.239]", transitive_headers=True)
        self.requires("vulkan-memory-allocator/[>=3.2]")

    def build_requirements(self):
        self.tool_requires("meson/[>=1.0]")
        if not os.path.exists(os.path.join(self.recipe_folder, os.pardir, os.pardir, "kernels", "generated")):
            self.tool_requires("glslang/[*]")
            self.tool_requires("spirv-tools/[*]")

    def validate(self):
        check_min_cppstd(self, 17)

    def generate(self):
        toolchain = MesonToolchain(self)
        toolchain.project_options.update(tests=False, benchmarks=False, tools=bool(self.options.tools))
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.libs = ["brontes"]
        self.cpp_info.set_property("pkg_config_name", "brontes")
        self.cpp_info.set_property("cmake_target_name", "brontes::brontes")
        if not self.options.shared:
            self.cpp_info.defines = ["BRONTES_STATIC"]
            if self.settings.os in ("Linux", "FreeBSD"):
                self.cpp_info.system_libs = ["dl", "m", "pthread"]
