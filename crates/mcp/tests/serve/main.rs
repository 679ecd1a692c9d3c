//! Serving, tried from the outside: request by request, with real clients and
//! with the official conformance suite, directly and through a connection.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod driven;
#[cfg(test)]
mod http;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod long_requests;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod through;

#[cfg(test)]
mod site;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tools;
