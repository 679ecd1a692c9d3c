//! The built-in tools for units of measurement.

use native::{ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;

/// A quantity in another unit.
#[derive(Debug, Serialize, JsonSchema)]
struct Converted {
    value: f64,
    unit: String,
    /// Both sides, to be read.
    text: String,
}

/// The units of one kind of quantity.
#[derive(Debug, Serialize, JsonSchema)]
struct Units {
    kind: String,
    units: Vec<String>,
}

/// Converts a quantity between units: length, mass, time, volume, area, speed,
/// temperature, energy, power, pressure, data, angle.
#[tool(read_only, idempotent, category = "units")]
fn convert(
    value: f64,
    /// The unit of `value`, such as `km`, `lb`, `°F`, `MiB`.
    from: String,
    /// The unit to convert to.
    to: String,
) -> Result<Converted, ToolError> {
    let (source, target) = (find(&from)?, find(&to)?);
    if source.kind != target.kind {
        let message = format!(
            "`{from}` is a unit of {} and `{to}` of {}; they cannot be converted",
            source.kind, target.kind,
        );
        return Err(ToolError::new("DifferentKinds", message));
    }
    let converted = (value * source.scale + source.shift - target.shift) / target.scale;
    if !converted.is_finite() {
        let message = format!("{value:e} {from} are too large a number of `{to}` to be told");
        return Err(ToolError::new("OutOfRange", message));
    }
    let converted = round_noise(converted);
    Ok(Converted {
        value: converted,
        unit: target.names[0].to_owned(),
        text: format!("{value} {} = {converted} {}", source.names[0], target.names[0]),
    })
}

/// Lists the units that are known, by the kind of quantity.
#[tool(read_only, idempotent, category = "units")]
fn list() -> Vec<Units> {
    let mut kinds: Vec<Units> = Vec::new();
    for unit in UNITS {
        let name = unit.names[0].to_owned();
        match kinds.iter_mut().find(|known| known.kind == unit.kind) {
            Some(known) => known.units.push(name),
            None => kinds.push(Units { kind: unit.kind.to_owned(), units: vec![name] }),
        }
    }
    kinds
}

/// One unit: `value * scale + shift` is the quantity in the base unit.
struct Unit {
    kind: &'static str,
    names: &'static [&'static str],
    scale: f64,
    shift: f64,
}

const fn unit(kind: &'static str, scale: f64, names: &'static [&'static str]) -> Unit {
    Unit { kind, names, scale, shift: 0.0 }
}

/// Every unit that is known. The first name of each is how it is written.
const UNITS: &[Unit] = &[
    unit("length", 1.0, &["m", "meter", "metre"]),
    unit("length", 1e-3, &["mm", "millimeter", "millimetre"]),
    unit("length", 1e-2, &["cm", "centimeter", "centimetre"]),
    unit("length", 1e3, &["km", "kilometer", "kilometre"]),
    unit("length", 1e-6, &["µm", "um", "micrometer", "micron"]),
    unit("length", 1e-9, &["nm", "nanometer"]),
    unit("length", 0.0254, &["in", "inch", "inches", "\""]),
    unit("length", 0.3048, &["ft", "foot", "feet", "'"]),
    unit("length", 0.9144, &["yd", "yard"]),
    unit("length", 1_609.344, &["mi", "mile"]),
    unit("length", 1_852.0, &["nmi", "nauticalmile"]),
    unit("length", 9.460_730_472_580_8e15, &["ly", "lightyear"]),
    unit("mass", 1.0, &["kg", "kilogram"]),
    unit("mass", 1e-3, &["g", "gram"]),
    unit("mass", 1e-6, &["mg", "milligram"]),
    unit("mass", 1e3, &["t", "tonne", "metricton"]),
    unit("mass", 0.453_592_37, &["lb", "lbs", "pound"]),
    unit("mass", 0.028_349_523_125, &["oz", "ounce"]),
    unit("mass", 6.350_293_18, &["st", "stone"]),
    unit("mass", 907.184_74, &["ton", "shortton"]),
    unit("time", 1.0, &["s", "sec", "second"]),
    unit("time", 1e-3, &["ms", "millisecond"]),
    unit("time", 1e-6, &["µs", "us", "microsecond"]),
    unit("time", 1e-9, &["ns", "nanosecond"]),
    unit("time", 60.0, &["min", "minute"]),
    unit("time", 3_600.0, &["h", "hr", "hour"]),
    unit("time", 86_400.0, &["d", "day"]),
    unit("time", 604_800.0, &["week", "wk"]),
    unit("time", 31_556_952.0, &["year", "yr", "a"]),
    unit("volume", 1.0, &["l", "L", "liter", "litre"]),
    unit("volume", 1e-3, &["ml", "mL", "milliliter", "millilitre", "cm3", "cm³"]),
    unit("volume", 1e3, &["m3", "m³", "cubicmeter", "cubicmetre"]),
    unit("volume", 3.785_411_784, &["gal", "gallon"]),
    unit("volume", 4.546_09, &["impgal", "imperialgallon"]),
    unit("volume", 0.946_352_946, &["qt", "quart"]),
    unit("volume", 0.473_176_473, &["pt", "pint"]),
    unit("volume", 0.236_588_236_5, &["cup"]),
    unit("volume", 0.029_573_529_562_5, &["floz", "fluidounce"]),
    unit("volume", 0.014_786_764_781_25, &["tbsp", "tablespoon"]),
    unit("volume", 0.004_928_921_593_75, &["tsp", "teaspoon"]),
    unit("area", 1.0, &["m2", "m²", "sqm", "squaremeter", "squaremetre"]),
    unit("area", 1e6, &["km2", "km²", "squarekilometer", "squarekilometre"]),
    unit("area", 1e4, &["ha", "hectare"]),
    unit("area", 4_046.856_422_4, &["acre"]),
    unit("area", 0.092_903_04, &["sqft", "ft2", "ft²", "squarefoot", "squarefeet"]),
    unit("area", 2_589_988.110_336, &["sqmi", "mi2", "mi²", "squaremile"]),
    unit("speed", 1.0, &["m/s", "mps"]),
    unit("speed", 1.0 / 3.6, &["km/h", "kmh", "kph"]),
    unit("speed", 0.447_04, &["mph", "mi/h"]),
    unit("speed", 1_852.0 / 3_600.0, &["kn", "knot", "kt"]),
    Unit { kind: "temperature", names: &["K", "kelvin"], scale: 1.0, shift: 0.0 },
    Unit {
        kind: "temperature", names: &["°C", "C", "celsius", "degc"], scale: 1.0, shift: 273.15
    },
    Unit {
        kind: "temperature",
        names: &["°F", "F", "fahrenheit", "degf"],
        scale: 5.0 / 9.0,
        shift: 273.15 - 32.0 * 5.0 / 9.0,
    },
    unit("energy", 1.0, &["J", "joule"]),
    unit("energy", 1e3, &["kJ", "kilojoule"]),
    unit("energy", 3.6e6, &["kWh", "kilowatthour"]),
    unit("energy", 3_600.0, &["Wh", "watthour"]),
    unit("energy", 4.184, &["cal", "calorie"]),
    unit("energy", 4_184.0, &["kcal", "kilocalorie"]),
    unit("energy", 1_055.055_852_62, &["BTU"]),
    unit("energy", 1.602_176_634e-19, &["eV", "electronvolt"]),
    unit("power", 1.0, &["W", "watt"]),
    unit("power", 1e3, &["kW", "kilowatt"]),
    unit("power", 745.699_871_582_270_2, &["hp", "horsepower"]),
    unit("pressure", 1.0, &["Pa", "pascal"]),
    unit("pressure", 100.0, &["hPa", "hectopascal", "mbar", "millibar"]),
    unit("pressure", 1e3, &["kPa", "kilopascal"]),
    unit("pressure", 1e5, &["bar"]),
    unit("pressure", 101_325.0, &["atm", "atmosphere"]),
    unit("pressure", 6_894.757_293_168, &["psi"]),
    unit("pressure", 133.322_387_415, &["mmHg", "torr"]),
    unit("data", 1.0, &["B", "byte"]),
    unit("data", 0.125, &["bit", "b"]),
    unit("data", 1e3, &["kB", "kilobyte"]),
    unit("data", 1e6, &["MB", "megabyte"]),
    unit("data", 1e9, &["GB", "gigabyte"]),
    unit("data", 1e12, &["TB", "terabyte"]),
    unit("data", 1_024.0, &["KiB", "kibibyte"]),
    unit("data", 1_048_576.0, &["MiB", "mebibyte"]),
    unit("data", 1_073_741_824.0, &["GiB", "gibibyte"]),
    unit("data", 1_099_511_627_776.0, &["TiB", "tebibyte"]),
    unit("data", 125_000.0, &["Mbit", "megabit"]),
    unit("data", 125_000_000.0, &["Gbit", "gigabit"]),
    unit("angle", 1.0, &["rad", "radian"]),
    unit("angle", std::f64::consts::PI / 180.0, &["°", "deg", "degree"]),
    unit("angle", std::f64::consts::PI / 200.0, &["gon", "grad"]),
    unit("angle", std::f64::consts::TAU, &["turn", "revolution"]),
];

/// The SI prefixes and their names. In prefixes and symbols, case matters.
const PREFIXES: &[(&str, &str)] = &[
    ("", ""),
    ("E", "exa"),
    ("P", "peta"),
    ("T", "tera"),
    ("G", "giga"),
    ("M", "mega"),
    ("k", "kilo"),
    ("h", "hecto"),
    ("d", "deci"),
    ("c", "centi"),
    ("m", "milli"),
    ("µ", "micro"),
    ("u", "micro"),
    ("n", "nano"),
    ("p", "pico"),
    ("f", "femto"),
];

/// The symbols that take prefixes and their names, also of units that are not known
/// here.
const SYMBOLS: &[(&str, &str)] = &[
    ("A", "ampere"),
    ("B", "byte"),
    ("G", "gauss"),
    ("H", "henry"),
    ("L", "liter"),
    ("M", "molar"),
    ("N", "newton"),
    ("S", "siemens"),
    ("T", "tesla"),
    ("V", "volt"),
    ("b", "bit"),
    ("bar", "bar"),
    ("bit", "bit"),
    ("g", "gram"),
    ("l", "liter"),
    ("m", "meter"),
    ("s", "second"),
    ("t", "tonne"),
];

/// Symbols that differ from a known unit only in case and mean another one.
const OTHERS: &[(&str, &str)] = &[
    ("Cal", "kilocalorie"),
    ("NM", "nautical mile"),
    ("Nm", "newton meter"),
    ("gb", "gigabit"),
    ("k", "kilo without a unit"),
    ("mb", "megabit"),
    ("tb", "terabit"),
];

/// Finds a unit as it is written, then without spaces and the plural and, if that is
/// unambiguous, regardless of case.
fn find(text: &str) -> Result<&'static Unit, ToolError> {
    let text = text.trim();
    let written = text.replace([' ', '_', '-', '.'], "");
    let singular = written.strip_suffix('s').unwrap_or(&written);
    if let Some(unit) = find_exact(text).or_else(|| find_exact(&written)) {
        return Ok(unit);
    }
    let Some((folded, unit)) =
        find_ignoring_case(&written).or_else(|| find_ignoring_case(singular))
    else {
        let message = format!("no unit is called `{text}`; `units.list` shows those that are");
        return Err(ToolError::new("UnknownUnit", message));
    };
    let reading = expand_symbol(&written).or_else(|| expand_symbol(singular)).or_else(|| {
        let is_bits = folded.ends_with('B') && singular.ends_with('b');
        is_bits.then(|| "number of bits".to_owned())
    });
    let Some(reading) = reading else { return Ok(unit) };
    let meant = find_exact(&reading.replace(' ', ""));
    if meant.is_some_and(|meant| std::ptr::eq(meant, unit)) {
        return Ok(unit);
    }
    let article = if reading.starts_with(['a', 'e', 'o']) { "an" } else { "a" };
    let instead = match meant {
        Some(meant) => format!("; write `{}`, or `{folded}`", meant.names[0]),
        None => format!(", which is not known; `{}` is", unit.names[0]),
    };
    Err(ToolError::new("AmbiguousUnit", format!("`{text}` is {article} {reading}{instead}")))
}

/// Returns the unit with this name, in this case.
fn find_exact(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.names.contains(&name))
}

/// Returns the unit with this name in any case, and how the name is written.
fn find_ignoring_case(name: &str) -> Option<(&'static str, &'static Unit)> {
    let name = name.to_lowercase();
    UNITS.iter().find_map(|unit| {
        let found = unit.names.iter().find(|known| known.to_lowercase() == name);
        found.map(|found| (*found, unit))
    })
}

/// Expands a prefix and a symbol to words: `km` is `kilometer`.
fn expand_symbol(text: &str) -> Option<String> {
    let other = OTHERS.iter().find(|(other, _)| *other == text);
    let other = other.map(|(_, words)| (*words).to_owned());
    let prefixed = PREFIXES.iter().find_map(|(prefix, multiple)| {
        let symbol = text.strip_prefix(prefix)?;
        let (_, word) = SYMBOLS.iter().find(|(known, _)| *known == symbol)?;
        Some(format!("{multiple}{word}"))
    });
    other.or(prefixed)
}

/// Rounds to twelve significant digits, to remove floating-point noise.
fn round_noise(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}
