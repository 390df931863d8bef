# An overlay port: the release tarball lies beside this file (tools/package). It contains the kernels compiled, so no
# shader compiler is needed.
vcpkg_extract_source_archive(SOURCE_PATH
    ARCHIVE "${CURRENT_PORT_DIR}/brontes-${VERSION}.tar.xz"
)

set(TOOLS false)
if("tools" IN_LIST FEATURES)
    set(TOOLS true)
endif()

vcpkg_configure_meson(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -Dtests=false
        -Dbenchmarks=false
        -Dtools=${TOOLS}
        -Dkernels=prebuilt
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/brontes)
if(TOOLS STREQUAL "true")
    vcpkg_copy_tools(TOOL_NAMES brontes AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
