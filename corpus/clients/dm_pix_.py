# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Image operations of PIX on images whose height has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dm_pix
import jax
import jax.numpy as jnp

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _image(size: int) -> Any:
    return abs(normal(size, 7, 3)) % 1


@program()
def colours(size: int) -> Built:
    def change(image: Any) -> Any:
        image = dm_pix.adjust_hue(dm_pix.adjust_contrast(dm_pix.adjust_brightness(image, 0.1), 1.3), 0.2)
        return dm_pix.rgb_to_grayscale(dm_pix.adjust_saturation(image, 0.5)), dm_pix.rgb_to_hsv(image)

    return change, (_image(size),)


@program()
def blur(size: int) -> Built:
    return lambda image: dm_pix.gaussian_blur(image, 1.5, 3), (_image(size),)


@program()
def flips_and_rotations(size: int) -> Built:
    def change(image: Any) -> Any:
        return (
            dm_pix.flip_left_right(image),
            dm_pix.rot90(image, 1),
            dm_pix.rot90(image, 2),
            dm_pix.solarize(image, 0.5),
        )

    return change, (_image(size),)


@program()
def similarity(size: int) -> Built:
    def compare(a: Any, b: Any) -> Any:
        return dm_pix.psnr(a, b), dm_pix.mae(a, b), dm_pix.simse(a, b)

    return compare, (_image(size)[None], abs(normal(1, size, 7, 3, seed=1)) % 1)


@program(sizes=lambda size: size + 11)
def structural_similarity(size: int) -> Built:
    def compare(a: Any, b: Any) -> Any:
        return dm_pix.ssim(a, b, filter_size=5)

    return compare, (abs(normal(size, 19, 3)) % 1, abs(normal(size, 19, 3, seed=1)) % 1)


@program()
def affine(size: int) -> Built:
    def transform(image: Any, matrix: Any) -> Any:
        return dm_pix.affine_transform(image, jnp.eye(3) + 0.05 * matrix, mode="nearest")

    return transform, (_image(size), normal(3, 3, seed=1))


@program()
def depth_to_space(size: int) -> Built:
    def move(image: Any) -> Any:
        return dm_pix.space_to_depth(dm_pix.depth_to_space(image, 2), 2)

    return move, (normal(size, 4, 8),)


@program()
def random_crop(size: int) -> Built:
    def crop(image: Any) -> Any:
        return dm_pix.random_crop(jax.random.key(0), image, (4, 5, 3))

    return crop, (_image(size),)


@program()
def patches(size: int) -> Built:
    def cut(image: Any) -> Any:
        return dm_pix.extract_patches(image[None], sizes=(1, 2, 2, 1), strides=(1, 1, 1, 1), rates=(1, 1, 1, 1))

    return cut, (_image(size),)
