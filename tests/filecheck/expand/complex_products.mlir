// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A product of unknown length is four products.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>, %[[B:\w+]]: tensor<?x?xf32, [@m, @k]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?x?xf32, [@k, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?x?xf32, [@k, @n]>) -> (tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>) {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT2:\w+]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[DOT]], %[[DOT2]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT3:\w+]] = stablehlo.dot_general %[[A]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT4:\w+]] = stablehlo.dot_general %[[B]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[DOT3]], %[[DOT4]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[ADD]] : tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x?xf32, [@m, @k]>, %b: tensor<?x?xf32, [@m, @k]>, %c: tensor<?x?xf32, [@k, @n]>,
    %d: tensor<?x?xf32, [@k, @n]>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@m, @k]>) -> tensor<?x?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?x?xf32, [@k, @n]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xcomplex<f32>>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  %2 = stablehlo.imag %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A short one is written out: a slice of each part for each term.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xf32, [@m, 2]>, %[[B:\w+]]: tensor<?x2xf32, [@m, 2]>,
// CHECK-SAME: %[[C:\w+]]: tensor<2x?xf32, [2, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x2xf32, [@m, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xf32, [@m, 1]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[SLICE]], %{{\w+}}
// CHECK-SAME: : (tensor<?x1xf32, [@m, 1]>, tensor<1xi64>) -> tensor<?xf32, [@m]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[RESHAPE]], %{{\w+}}, dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@m]>, tensor<2xi64>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[B]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x2xf32, [@m, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xf32, [@m, 1]>
// CHECK-NEXT: %[[RESHAPE2:\w+]] = stablehlo.dynamic_reshape %[[SLICE2]], %{{\w+}}
// CHECK-SAME: : (tensor<?x1xf32, [@m, 1]>, tensor<1xi64>) -> tensor<?xf32, [@m]>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[RESHAPE2]], %{{\w+}}, dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@m]>, tensor<2xi64>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[SLICE3:\w+]] = stablehlo.real_dynamic_slice %[[C]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<2x?xf32, [2, @n]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<1x?xf32, [1, @n]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[RESHAPE3:\w+]] = stablehlo.dynamic_reshape %[[SLICE3]], %{{\w+}}
// CHECK-SAME: : (tensor<1x?xf32, [1, @n]>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[RESHAPE3]], %{{\w+}}, dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<2xi64>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SLICE4:\w+]] = stablehlo.real_dynamic_slice %[[D]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<2x?xf32, [2, @n]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<1x?xf32, [1, @n]>
// CHECK-NEXT: %[[RESHAPE4:\w+]] = stablehlo.dynamic_reshape %[[SLICE4]], %{{\w+}}
// CHECK-SAME: : (tensor<1x?xf32, [1, @n]>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[RESHAPE4]], %{{\w+}}, dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<2xi64>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[BROADCAST]], %[[BROADCAST3]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[BROADCAST2]], %[[BROADCAST4]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[MULTIPLY]], %[[MULTIPLY2]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[MULTIPLY3:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT2:\w+]] = stablehlo.subtract %[[MULTIPLY3]], %[[MULTIPLY4]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[SUBTRACT]], %[[SUBTRACT2]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[ADD]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x2xf32, [@m, 2]>, %b: tensor<?x2xf32, [@m, 2]>, %c: tensor<2x?xf32, [2, @n]>,
    %d: tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf32> {
  %x = stablehlo.complex %a, %b : (tensor<?x2xf32, [@m, 2]>, tensor<?x2xf32, [@m, 2]>) -> tensor<?x2xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<2x?xf32, [2, @n]>, tensor<2x?xf32, [2, @n]>) -> tensor<2x?xcomplex<f32>>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x2xcomplex<f32>>, tensor<2x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// With a batch, each term keeps the batch's axis; the only column of a matrix is the matrix.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x1xf32, [@m, 1]>, %{{\w+}}: tensor<?x1xf32, [@m, 1]>,
// CHECK-SAME: %{{\w+}}: tensor<?x1xf32, [@m, 1]>, %{{\w+}}: tensor<?x1xf32, [@m, 1]>) -> tensor<?xf32, [@m]> {
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK-NOT: real_dynamic_slice
// CHECK: stablehlo.dynamic_reshape %[[A]], %{{\w+}} : (tensor<?x1xf32, [@m, 1]>, tensor<1xi64>) -> tensor<?xf32, [@m]>
// CHECK-NOT: complex<
// CHECK-NOT: dot_general
// CHECK: %[[MULTIPLY:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@m]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %{{\w+}}, %{{\w+}} : tensor<?xf32, [@m]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[MULTIPLY]], %[[MULTIPLY2]] : tensor<?xf32, [@m]>
// CHECK-NEXT: return %[[SUBTRACT]] : tensor<?xf32, [@m]>
func.func @main(%a: tensor<?x1xf32, [@m, 1]>, %b: tensor<?x1xf32, [@m, 1]>, %c: tensor<?x1xf32, [@m, 1]>,
    %d: tensor<?x1xf32, [@m, 1]>) -> tensor<?xf32> {
  %x = stablehlo.complex %a, %b : (tensor<?x1xf32, [@m, 1]>, tensor<?x1xf32, [@m, 1]>) -> tensor<?x1xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?x1xf32, [@m, 1]>, tensor<?x1xf32, [@m, 1]>) -> tensor<?x1xcomplex<f32>>
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1]
      : (tensor<?x1xcomplex<f32>>, tensor<?x1xcomplex<f32>>) -> tensor<?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Nine terms are not written out.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x9xf32, [@m, 9]>, %[[B:\w+]]: tensor<?x9xf32, [@m, 9]>,
// CHECK-SAME: %[[C:\w+]]: tensor<9x?xf32, [9, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<9x?xf32, [9, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x9xf32, [@m, 9]>, tensor<9x?xf32, [9, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT2:\w+]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x9xf32, [@m, 9]>, tensor<9x?xf32, [9, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[DOT]], %[[DOT2]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[SUBTRACT]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x9xf32, [@m, 9]>, %b: tensor<?x9xf32, [@m, 9]>, %c: tensor<9x?xf32, [9, @n]>,
    %d: tensor<9x?xf32, [9, @n]>) -> tensor<?x?xf32> {
  %x = stablehlo.complex %a, %b : (tensor<?x9xf32, [@m, 9]>, tensor<?x9xf32, [@m, 9]>) -> tensor<?x9xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<9x?xf32, [9, @n]>, tensor<9x?xf32, [9, @n]>) -> tensor<9x?xcomplex<f32>>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x9xcomplex<f32>>, tensor<9x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// A short one with a wider result is not written out either.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xf32, [@m, 2]>, %[[B:\w+]]: tensor<?x2xf32, [@m, 2]>,
// CHECK-SAME: %[[C:\w+]]: tensor<2x?xf32, [2, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf64, [@m, @n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x2xf32, [@m, 2]>, tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf64, [@m, @n]>
// CHECK-NEXT: %[[DOT2:\w+]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x2xf32, [@m, 2]>, tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf64, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[DOT]], %[[DOT2]] : tensor<?x?xf64, [@m, @n]>
// CHECK-NEXT: return %[[SUBTRACT]] : tensor<?x?xf64, [@m, @n]>
func.func @main(%a: tensor<?x2xf32, [@m, 2]>, %b: tensor<?x2xf32, [@m, 2]>, %c: tensor<2x?xf32, [2, @n]>,
    %d: tensor<2x?xf32, [2, @n]>) -> tensor<?x?xf64> {
  %x = stablehlo.complex %a, %b : (tensor<?x2xf32, [@m, 2]>, tensor<?x2xf32, [@m, 2]>) -> tensor<?x2xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<2x?xf32, [2, @n]>, tensor<2x?xf32, [2, @n]>) -> tensor<2x?xcomplex<f32>>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x2xcomplex<f32>>, tensor<2x?xcomplex<f32>>) -> tensor<?x?xcomplex<f64>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// A convolution is four as well.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>, %[[B:\w+]]: tensor<?x?x3xf32, [@b, @h, 3]>,
// CHECK-SAME: %[[C:\w+]]: tensor<2x3x?xf32, [2, 3, @o]>,
// CHECK-SAME: %[[D:\w+]]: tensor<2x3x?xf32, [2, 3, @o]>) -> (tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>, tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>) {
// CHECK-NEXT: %[[CONVOLUTION:\w+]] = stablehlo.convolution(%[[A]],
// CHECK-SAME: %[[C]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x?xf32, [2, 3, @o]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: %[[CONVOLUTION2:\w+]] = stablehlo.convolution(%[[B]],
// CHECK-SAME: %[[D]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x?xf32, [2, 3, @o]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[CONVOLUTION]], %[[CONVOLUTION2]]
// CHECK-SAME: : tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: %[[CONVOLUTION3:\w+]] = stablehlo.convolution(%[[A]],
// CHECK-SAME: %[[D]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x?xf32, [2, 3, @o]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: %[[CONVOLUTION4:\w+]] = stablehlo.convolution(%[[B]],
// CHECK-SAME: %[[C]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64,
// CHECK-SAME: feature_group_count = 1 : i64} : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<2x3x?xf32, [2, 3, @o]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[CONVOLUTION3]], %[[CONVOLUTION4]]
// CHECK-SAME: : tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[ADD]] : tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>,
// CHECK-SAME: tensor<?x?x?xf32, [@b, @"max(0, h - 1)", @o]>
func.func @main(%a: tensor<?x?x3xf32, [@b, @h, 3]>, %b: tensor<?x?x3xf32, [@b, @h, 3]>,
    %c: tensor<2x3x?xf32, [2, 3, @o]>, %d: tensor<2x3x?xf32, [2, 3, @o]>) -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?x?x3xf32, [@b, @h, 3]>, tensor<?x?x3xf32, [@b, @h, 3]>)
      -> tensor<?x?x3xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<2x3x?xf32, [2, 3, @o]>, tensor<2x3x?xf32, [2, 3, @o]>)
      -> tensor<2x3x?xcomplex<f32>>
  %0 = "stablehlo.convolution"(%x, %y) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}>
          : (tensor<?x?x3xcomplex<f32>>, tensor<2x3x?xcomplex<f32>>) -> tensor<?x?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?x?xcomplex<f32>>) -> tensor<?x?x?xf32>
  %2 = stablehlo.imag %0 : (tensor<?x?x?xcomplex<f32>>) -> tensor<?x?x?xf32>
  return %1, %2 : tensor<?x?x?xf32>, tensor<?x?x?xf32>
}

// -----

// `dot` of the older form, too.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>, %[[B:\w+]]: tensor<?x?xf32, [@m, @k]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?x?xf32, [@k, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?x?xf32, [@k, @n]>) -> (tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>) {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT2:\w+]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[DOT]], %[[DOT2]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT3:\w+]] = stablehlo.dot_general %[[A]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[DOT4:\w+]] = stablehlo.dot_general %[[B]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[DOT3]], %[[DOT4]] : tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[SUBTRACT]], %[[ADD]] : tensor<?x?xf32, [@m, @n]>, tensor<?x?xf32, [@m, @n]>
func.func @main(%a: tensor<?x?xf32, [@m, @k]>, %b: tensor<?x?xf32, [@m, @k]>, %c: tensor<?x?xf32, [@k, @n]>,
    %d: tensor<?x?xf32, [@k, @n]>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@m, @k]>) -> tensor<?x?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?x?xf32, [@k, @n]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xcomplex<f32>>
  %0 = stablehlo.dot %x, %y : (tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  %2 = stablehlo.imag %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// `einsum` likewise, each with its transpose.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>, %[[B:\w+]]: tensor<?x?xf32, [@m, @k]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?x?xf32, [@k, @n]>,
// CHECK-SAME: %[[D:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@n, @m]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[C]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[DOT]], dims = [1, 0] : (tensor<?x?xf32, [@m, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@n, @m]>
// CHECK-NEXT: %[[DOT2:\w+]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[DOT2]], dims = [1, 0] : (tensor<?x?xf32, [@m, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@n, @m]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[TRANSPOSE]], %[[TRANSPOSE2]] : tensor<?x?xf32, [@n, @m]>
// CHECK-NEXT: return %[[SUBTRACT]] : tensor<?x?xf32, [@n, @m]>
func.func @main(%a: tensor<?x?xf32, [@m, @k]>, %b: tensor<?x?xf32, [@m, @k]>, %c: tensor<?x?xf32, [@k, @n]>,
    %d: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %x = stablehlo.complex %a, %b : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@m, @k]>) -> tensor<?x?xcomplex<f32>>
  %y = stablehlo.complex %c, %d : (tensor<?x?xf32, [@k, @n]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xcomplex<f32>>
  %0 = "stablehlo.einsum"(%x, %y) <{einsum_config = "mk,kn->nm"}>
      : (tensor<?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>) -> tensor<?x?xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<?x?xcomplex<f32>>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// A complex and a real operand do not meet.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.dot_general at line {{[0-9]+}}: operands of different kinds (complex<f32> and f32) have no lowering
func.func @main(%x: tensor<?x?xcomplex<f32>, [@m, @k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xcomplex<f32>> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xcomplex<f32>, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xcomplex<f32>>
  return %0 : tensor<?x?xcomplex<f32>>
}

// -----

// Reals have one product.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
